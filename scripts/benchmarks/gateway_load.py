"""Load on a server by wrk, and the processor time of the processes that serve it.

Invariant: bodies that may be in flight at the same time are different, unless they are meant to be
the same: a server that answers equal requests once must not look faster than it is.
"""

from __future__ import annotations

import os
import statistics
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from scripts.benchmarks.memory import process_tree

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
DIFFERENT = 4096
"""Bodies that are sent by turns: many more than connections."""
_TIMEOUT_SECONDS = 10
_SPARE_SECONDS = 60.0
_SCRIPT = """\
local bodies = {}
local n = 0
function init(args)
  for line in io.lines("BODIES") do
    bodies[#bodies + 1] = wrk.format("POST", nil, nil, line)
  end
end
function request()
  n = n % #bodies + 1
  return bodies[n]
end
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\\n{"requests":%d,"microseconds":%d,"lost":%d,"refused":%d,"p50":%d,"p99":%d}\\n',
    summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.timeout, errors.status,
    latency:percentile(50), latency:percentile(99)))
end
"""


@dataclass(frozen=True, slots=True)
class Target:
    """What is put under load. `root`: the process whose tree serves it, None: not watched;
    `bodies`: sent by turns."""

    name: str
    url: str
    bodies: Sequence[bytes]
    headers: Mapping[str, str]
    root: int | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One short run of load. `errors`: requests without an answer, or with a status of 400 and
    above; `p50`, `p99`: milliseconds; `cpu`: role of the process -> milliseconds of processor time
    per request."""

    requests: int
    seconds: float
    errors: int
    p50: float
    p99: float
    cpu: Mapping[str, float]

    @property
    def rate(self) -> float:
        """Good answers a second."""
        return (self.requests - self.errors) / self.seconds

    @property
    def all_cpu(self) -> float:
        """Milliseconds of processor time per request, all processes together."""
        return sum(self.cpu.values())


def put_under_load(target: Target, connections: int, seconds: int, folder: Path) -> Round:
    """One round. Raises RuntimeError where wrk fails."""
    script, bodies = folder / "load.lua", folder / "bodies"
    bodies.write_bytes(b"".join(body + b"\n" for body in target.bodies))
    script.write_text(_SCRIPT.replace("BODIES", str(bodies)))
    told = [f"{name}: {value}" for name, value in target.headers.items()]
    before = cpu_seconds(target.root)
    done = subprocess.run(
        [
            *("wrk", "-t1", f"-c{connections}", f"-d{seconds}s", f"--timeout={_TIMEOUT_SECONDS}s"),
            *(word for header in told for word in ("-H", header)),
            *("-s", str(script), target.url),
        ],
        capture_output=True,
        timeout=seconds + _SPARE_SECONDS,
    )
    after = cpu_seconds(target.root)
    if done.returncode != 0:
        raise RuntimeError(f"wrk failed on {target.name}: {done.stderr.decode()[-1000:]}")
    return read_round(done.stdout.decode(), spent(before, after))


def read_round(output: str, cpu: Mapping[str, float]) -> Round:
    """What wrk wrote, and the seconds of processor time that each role took meanwhile."""
    told = orjson.loads(output.strip().rpartition("\n")[2])
    requests = max(1, told["requests"])
    return Round(
        requests=told["requests"],
        seconds=told["microseconds"] / 1e6,
        errors=told["lost"] + told["refused"],
        p50=told["p50"] / 1000,
        p99=told["p99"] / 1000,
        cpu={role: seconds * 1000 / requests for role, seconds in cpu.items()},
    )


def cpu_seconds(root: int | None) -> dict[int, tuple[str, float]]:
    """Every process of the tree: its role and the processor time it has taken since it began."""
    taken = {}
    for pid in process_tree(root) if root is not None else ():
        # A process may end while it is looked at.
        with suppress(OSError, ValueError):
            fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
            words = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace")
            taken[pid] = (role_of(words), (int(fields[11]) + int(fields[12])) / _TICKS)
    return taken


def spent(
    before: Mapping[int, tuple[str, float]], after: Mapping[int, tuple[str, float]]
) -> dict[str, float]:
    """Seconds of processor time by role between two looks."""
    roles: Counter[str] = Counter()
    for pid, (role, seconds) in after.items():
        roles[role] += seconds - before.get(pid, ("", 0.0))[1]  # type: ignore[assignment]
    return dict(roles)


def role_of(command: str) -> str:
    """What a process of a Ray cluster does, by its command line (words end with a NUL). A replica
    is named by its application."""
    first = command.partition("\0")[0]
    if first.startswith("ray::ServeReplica:"):
        return f"replica {first.split(':')[3]}"
    if first.startswith("ray::ProxyActor"):
        return "ingress"
    if "haproxy" in first.rpartition("/")[2]:
        return "ingress"
    if first.startswith("ray::LimiterActor"):
        return "limiter"
    if first.startswith("ray::MeterActor"):
        return "accounts of keys"
    return "rest of Ray"


def median_round(rounds: Sequence[Round]) -> Round:
    """The median of each figure on its own; errors are summed. Raises StatisticsError for none."""

    def middle(values: Sequence[float]) -> float:
        return float(statistics.median(values))

    roles = sorted({role for one in rounds for role in one.cpu})
    return Round(
        requests=round(middle([one.requests for one in rounds])),
        seconds=middle([one.seconds for one in rounds]),
        errors=sum(one.errors for one in rounds),
        p50=middle([one.p50 for one in rounds]),
        p99=middle([one.p99 for one in rounds]),
        cpu={role: middle([one.cpu.get(role, 0.0) for one in rounds]) for role in roles},
    )
