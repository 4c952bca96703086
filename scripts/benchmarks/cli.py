"""The command line of `scripts/bench`: one subcommand per benchmark.

A benchmark is a module with a docstring, `add_arguments(parser)` and `run(args) -> int`, whose
exit code is 0 only if every bar holds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts.benchmarks import (
    answers,
    bad_day,
    compare,
    deadline,
    embed,
    flat_memory,
    fold,
    gateway,
    generate,
    kill_day,
    load,
    metrics,
    models_scale,
    overhead,
    pack_size,
    plan,
    quota,
    reading,
    rerun,
    routing,
    search,
    seed_day,
    spend,
    submit,
)

_BENCHMARKS = {
    "seed-day": seed_day,
    "bad-day": bad_day,
    "compare": compare,
    "kill-day": kill_day,
    "deadline": deadline,
    "answers": answers,
    "rerun": rerun,
    "overhead": overhead,
    "pack-size": pack_size,
    "plan": plan,
    "fold": fold,
    "reading": reading,
    "routing": routing,
    "search": search,
    "spend": spend,
    "flat-memory": flat_memory,
    "submit": submit,
    "gateway": gateway,
    "generate": generate,
    "load": load,
    "metrics": metrics,
    "models-scale": models_scale,
    "quota": quota,
    "embed": embed,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    commands = parser.add_subparsers(dest="benchmark", required=True, metavar="BENCHMARK")
    for name, module in _BENCHMARKS.items():
        about = module.__doc__ or ""
        command = commands.add_parser(name, help=about.splitlines()[0], description=about)
        command.add_argument("--records", type=int, default=3000, help="records of the day")
        command.add_argument("--seed", type=int, default=1, help="of the day and of the faults")
        command.add_argument(
            "--scale", type=float, default=1.0, help="simulated seconds in a real one, for trials"
        )
        command.add_argument(
            "--keep", type=Path, metavar="DIR", help="work in DIR, which must be empty, and keep it"
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one benchmark; its exit code."""
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.keep is None:
        with tempfile.TemporaryDirectory(prefix="fupan-bench-") as folder:
            args.folder = Path(folder)
            return int(args.run(args))
    args.folder = args.keep.absolute()
    args.folder.mkdir(parents=True, exist_ok=True)
    if any(args.folder.iterdir()):
        parser.error(f"{args.keep} is not empty")
    return int(args.run(args))
