"""Who holds the folder of a run, on a disk and in an object store."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from job.errors import OutputInUse
from job.run_folder import OWN_FILES, RunFolder
from job.storage import lease
from job.storage.hold import hold
from job.storage.place import Place
from job.write import write_atomic, write_json
from tests.job.cloud import cloud_folder, cloud_server, keys
from tests.object_store import ObjectStore

pytestmark = pytest.mark.slow

MINE: dict[str, object] = {"inputs": ["a.log"], "model": "m"}
OTHER: dict[str, object] = {"inputs": ["b.log"], "model": "m"}


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with cloud_server() as server:
        yield server


@pytest.fixture
def cloud(server: ObjectStore, request: pytest.FixtureRequest) -> Iterator[Place]:
    with cloud_folder(server, request) as folder:
        yield folder


def test_a_run_folder_follows_the_same_rules(server: ObjectStore, cloud: Place) -> None:
    folder = RunFolder(cloud)
    with folder.locked():
        assert folder.begin(MINE, overwrite=False) is False
        write_atomic(folder.asked / "x.parquet", "")
        write_atomic(folder.results / ".part-00000.parquet.0123abcd.part", "")
        assert folder.begin(MINE, overwrite=False) is True
        assert folder.asked.iterdir() == []
        for name in (*OWN_FILES, "results/part-00000.parquet"):
            write_json(cloud / name, {"identity": MINE})
        folder.finish()
    assert sorted(keys(server, cloud)) == sorted((*OWN_FILES, "results/part-00000.parquet"))
    with pytest.raises(OutputInUse, match="other inputs or settings"):
        folder.begin(OTHER, overwrite=False)
    assert folder.begin(OTHER, overwrite=True) is False
    assert keys(server, cloud) == [".fupan-run.json"]
    folder.finish()
    write_atomic(cloud / "precious.txt", "mine")
    with pytest.raises(OutputInUse, match="something else"):
        folder.begin(MINE, overwrite=False)
    folder.begin(MINE, overwrite=True)
    folder.finish()
    assert keys(server, cloud) == ["precious.txt"]


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "LEASE_SECONDS", 1.5)
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.1)
    monkeypatch.setattr(lease, "LOOK_SECONDS", 0.1)


@pytest.mark.usefixtures("short_leases")
def test_two_runs_never_hold_one_folder(server: ObjectStore, cloud: Place) -> None:
    with hold(cloud) as still_held:
        with pytest.raises(OutputInUse, match="in use by another run"), hold(cloud):
            pass
        still_held()
    with hold(cloud):
        assert len(keys(server, cloud)) == 1
    assert keys(server, cloud) == []


@pytest.mark.usefixtures("short_leases")
def test_of_many_that_come_at_once_one_holds_the_folder(server: ObjectStore, cloud: Place) -> None:
    holders, most, refused = 0, 0, 0
    count, ready = threading.Lock(), threading.Barrier(6)

    def come() -> None:
        nonlocal holders, most, refused
        ready.wait()
        try:
            with hold(cloud):
                with count:
                    holders += 1
                    most = max(most, holders)
                done.wait()
                with count:
                    holders -= 1
        except OutputInUse:
            refused += 1
            if refused == 5:
                done.set()

    done = threading.Event()
    threads = [threading.Thread(target=come) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, refused) == (1, 5)
    assert keys(server, cloud) == []


@pytest.mark.parametrize("state", ["held", "wanted"])
@pytest.mark.usefixtures("short_leases")
def test_a_dead_run_keeps_the_folder_only_as_long_as_its_lease(
    server: ObjectStore, cloud: Place, state: str
) -> None:
    write_atomic(cloud / f".lock-000007-00000000.{state}", "")
    with hold(cloud):
        assert len(keys(server, cloud)) == 1
    assert keys(server, cloud) == []


@pytest.mark.parametrize(
    ("other", "taken_for_dead"), [("000009-00000000", True), ("000001-ffffffff", False)]
)
@pytest.mark.usefixtures("short_leases")
def test_a_run_that_slept_too_long_learns_that_it_lost_the_folder(
    cloud: Place, other: str, taken_for_dead: bool
) -> None:
    with hold(cloud) as still_held:
        (held,) = cloud.glob(".lock-*.held")
        write_atomic(cloud / f".lock-{other}.held", "")
        if taken_for_dead:
            held.unlink()
        with pytest.raises(OutputInUse, match="taken over by another run"):
            still_held()
    assert [place.name for place in cloud.iterdir()] == [f".lock-{other}.held"]
