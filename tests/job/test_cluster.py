"""Which cluster a run uses. (A real one: tests/test_submit.py.)"""

from __future__ import annotations

import signal
import socket

import psutil
import pytest
import ray

from job.cluster import cluster
from job.errors import JobError, UsageError
from job.named_cluster import named_address


@pytest.mark.parametrize("address", ["", "local"])
def test_without_an_address_it_is_one_of_our_own(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    assert named_address() is None


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://127.0.0.1:8265", "scripts/submit"),
        ("ray://u:hush@127.0.0.1:10001", "scripts/submit"),
        ("127.0.0.1", "no Ray cluster answers"),
        ("127.0.0.1:99999", "no Ray cluster answers"),
        ("127.0.0.1:{free}", "refused"),
    ],
)
def test_an_address_of_no_cluster_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, address: str, said: str
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("RAY_ADDRESS", address.format(free=free.getsockname()[1]))
        with pytest.raises(UsageError, match=said) as caught:
            named_address()
    assert "RAY_ADDRESS=" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_cluster_of_our_own_that_does_not_start_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def init(**_: object) -> None:
        raise Exception("The current node timed out during startup.\nmore")

    monkeypatch.setattr(ray, "init", init)
    with (
        pytest.raises(JobError, match="timed out during startup"),
        cluster(own=True),
    ):
        pass


@pytest.mark.ray
def test_sigterm_interrupts_while_the_cluster_is_up() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), cluster(own=True):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


class _Worker:
    def name(self) -> str:
        return type(self).__name__


@pytest.mark.ray
def test_nothing_of_a_cluster_outlives_its_block() -> None:
    with cluster(own=True):
        worker = ray.remote(_Worker).options(num_cpus=0).remote()
        ray.get(worker.name.remote())
        started = psutil.Process().children(recursive=True)
        listening = [
            each.laddr.ip
            for process in (psutil.Process(), *started)
            for each in process.net_connections("tcp")
            if each.status == psutil.CONN_LISTEN
        ]
    assert len(started) > 5
    # In both notations: of IPv4, and as IPv6 shows it.
    assert len(listening) > 5
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}
    _, alive = psutil.wait_procs(started, timeout=60)
    assert not alive
