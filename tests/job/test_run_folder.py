"""Whether a run may use a folder, and what a killed one leaves to the next."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from job.errors import OutputInUse, UsageError
from job.run_folder import OWN_FILES, SPENDER, Before, RunFolder, is_run_folder
from job.storage.place import Place
from job.write import write_atomic, write_json

MINE: dict[str, object] = {"inputs": ["a.log"], "model": "m"}
OTHER: dict[str, object] = {"inputs": ["b.log"], "model": "m"}


class Killed(BaseException):
    """What ends a process here and now; nothing may catch it."""


def finished(root: Path, identity: dict[str, object]) -> None:
    """A folder as a run of `identity` leaves it."""
    folder = RunFolder(Place.of(root))
    with folder.locked():
        folder.begin(identity, overwrite=False)
        (root / "results").mkdir()
        for name in (*OWN_FILES, "results/part-00000.parquet"):
            (root / name).write_text(str(identity))
        write_json(Place.of(root) / "run.json", {"identity": identity})
        folder.finish()


def test_the_same_run_goes_on_and_another_one_is_refused(tmp_path: Path) -> None:
    finished(tmp_path, MINE)
    folder = RunFolder(Place.of(tmp_path))
    assert folder.begin(MINE, overwrite=False) is True
    folder.finish()
    with pytest.raises(OutputInUse, match="other inputs or settings"):
        folder.begin(OTHER, overwrite=False)
    assert (tmp_path / "report.html").exists()
    assert folder.begin(OTHER, overwrite=True) is False
    assert not any((tmp_path / name).exists() for name in OWN_FILES)
    assert folder.result_files() == []


def test_what_a_run_did_not_write_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    folder = RunFolder(Place.of(tmp_path))
    with pytest.raises(OutputInUse, match="something else"):
        folder.begin(MINE, overwrite=False)
    folder.begin(MINE, overwrite=True)
    folder.finish()
    assert (tmp_path / "precious.txt").read_text() == "mine"


def empty(root: Path) -> None:
    root.mkdir()


def foreign(root: Path) -> None:
    root.mkdir()
    (root / "precious.txt").write_text("mine")


def of_the_same(root: Path) -> None:
    finished(root, MINE)


def of_another(root: Path) -> None:
    finished(root, OTHER)


@pytest.mark.parametrize("before", [empty, foreign, of_the_same, of_another])
def test_a_kill_anywhere_in_the_beginning_lets_the_same_command_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: Callable[[Path], None]
) -> None:
    overwrite = before in (foreign, of_another)
    for killed_at in range(1, 100):
        root = tmp_path / str(killed_at)
        before(root)
        left = killed_at

        def dying(real: Callable[..., object]) -> Callable[..., object]:
            def change(*args: object, **named: object) -> object:
                nonlocal left
                left -= 1
                if left <= 0:
                    raise Killed
                return real(*args, **named)

            return change

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", dying(os.replace))
            patch.setattr(Place, "unlink", dying(Place.unlink))
            patch.setattr(Place, "rmtree", dying(Place.rmtree))
            try:
                RunFolder(Place.of(root)).begin(MINE, overwrite=overwrite)
                done = True
            except Killed:
                done = False
        if done:
            assert killed_at > 2
            return
        began = (root / ".fupan-run.json").exists()
        folder = RunFolder(Place.of(root))
        assert folder.begin(MINE, overwrite=overwrite and not began) is (
            began or before is of_the_same
        )
        if before is not of_the_same:
            assert not any((root / name).exists() for name in OWN_FILES)
        assert (root / "precious.txt").exists() is (before is foreign)
        assert list(root.glob(".*.part")) == []
    raise AssertionError("the beginning never ended")


def test_a_run_that_was_killed_midway_is_gone_on_with(tmp_path: Path) -> None:
    folder = RunFolder(Place.of(tmp_path))
    folder.begin(MINE, overwrite=False)
    write_atomic(folder.asked / "x.parquet", "")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "part-00000.parquet").write_text("")
    (tmp_path / "results" / ".part-00001.parquet.0123abcd.part").write_text("")
    assert folder.begin(MINE, overwrite=False) is True
    assert list(folder.asked.iterdir()) == []
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["part-00000.parquet"]
    with pytest.raises(OutputInUse):
        folder.begin(OTHER, overwrite=False)


def test_a_folder_with_nothing_but_our_hidden_files_is_ours(tmp_path: Path) -> None:
    folder = RunFolder(Place.of(tmp_path))
    with folder.locked():
        folder.begin(OTHER, overwrite=False)
    (tmp_path / ".report.html.0123abcd.part").write_text("")
    assert folder.begin(MINE, overwrite=False) is False


def test_a_run_may_begin_beside_a_comparison_and_leaves_it_alone(tmp_path: Path) -> None:
    (tmp_path / "compare.json").write_text("{}")
    folder = RunFolder(Place.of(tmp_path))
    assert folder.begin(MINE, overwrite=False) is False
    folder.begin(OTHER, overwrite=True)
    assert (tmp_path / "compare.json").exists()


def test_two_runs_never_hold_one_folder(tmp_path: Path) -> None:
    one, other = RunFolder(Place.of(tmp_path)), RunFolder(Place.of(tmp_path))
    with one.locked(), pytest.raises(OutputInUse, match="in use"), other.locked():
        pass
    with other.locked():
        pass


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("file", "is a file"),
        ("file/below", "is a file"),
        ("/proc/fupan", "cannot write to --out"),
    ],
)
def test_a_place_that_cannot_hold_results_is_a_usage_error(
    tmp_path: Path, out: str, said: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=said), RunFolder(Place.of(tmp_path / out)).locked():
        pass


def test_a_run_folder_is_known_while_and_after_the_run(tmp_path: Path) -> None:
    folder = RunFolder(Place.of(tmp_path))
    with folder.locked():
        assert not is_run_folder(Place.of(tmp_path))
        folder.begin(MINE, overwrite=False)
        assert is_run_folder(Place.of(tmp_path))
        folder.finish()
    assert not is_run_folder(Place.of(tmp_path))
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "ledger.json").write_text("{}")
    assert is_run_folder(Place.of(tmp_path))


def test_a_run_spends_under_one_name_until_another_begins(tmp_path: Path) -> None:
    folder = RunFolder(Place.of(tmp_path))
    with folder.locked():
        folder.begin(MINE, overwrite=False)
        name = folder.spender("a")
        folder.begin(MINE, overwrite=True)
        assert folder.spender("b") == name == (name[0], "a")
        folder.finish()
        folder.begin(MINE, overwrite=False, fresh=True)
        anew = folder.spender("b")
        folder.begin(OTHER, overwrite=True)
        other = folder.spender("b")
    assert len({name, anew, other}) == 3


def end(root: Path, stopped: str | None) -> None:
    """What a run of MINE leaves in its folder when it ends; `stopped`: early."""
    said = {"identity": MINE, "stopped": {"reason": stopped} if stopped else None}
    write_json(Place.of(root) / "run.json", said)
    RunFolder(Place.of(root)).finish()


def begin(root: Path, fresh: bool, now: float) -> tuple[str, float | None]:
    """Under which name a command of MINE spends, and from when on it recalls answers; what was
    foreseen of it comes true."""
    folder = RunFolder(Place.of(root))
    paths = {path: path.read_bytes() for path in root.iterdir() if path.is_file()}
    foreseen = folder.before(MINE, fresh)
    assert paths == {path: path.read_bytes() for path in root.iterdir() if path.is_file()}
    had_canary, spent = (root / "canary.json").exists(), (root / SPENDER).exists()
    folder.begin(MINE, overwrite=False, fresh=fresh, clock=lambda: now)
    assert (root / "canary.json").exists() == (had_canary and foreseen.kept)
    assert (root / SPENDER).exists() == (spent and foreseen.kept)
    if fresh:
        assert folder.fresh_since() == (foreseen.since or now)
    return folder.spender("a")[0], folder.fresh_since()


@pytest.mark.parametrize("killed", [False, True])
def test_a_stopped_run_that_asks_anew_goes_on_with_what_it_paid_for(
    tmp_path: Path, killed: bool
) -> None:
    first = begin(tmp_path, fresh=True, now=100.0)
    assert first[1] == 100.0
    (tmp_path / "canary.json").write_text("{}")
    if not killed:
        end(tmp_path, "the cap of 1 USD is reached")
    assert begin(tmp_path, fresh=True, now=200.0) == first
    assert (tmp_path / "canary.json").exists()
    end(tmp_path, None)
    anew = begin(tmp_path, fresh=True, now=300.0)
    assert anew[0] != first[0]
    assert anew[1] == 300.0
    assert not (tmp_path / "canary.json").exists()


@pytest.mark.parametrize("stopped", ["interrupted by SIGINT", None])
def test_a_run_that_recalled_goes_on_anew_with_fresh(tmp_path: Path, stopped: str | None) -> None:
    first = begin(tmp_path, fresh=True, now=100.0)
    end(tmp_path, None)
    assert begin(tmp_path, fresh=False, now=200.0) == (first[0], None)
    end(tmp_path, stopped)
    anew = begin(tmp_path, fresh=True, now=300.0)
    assert anew[0] != first[0]
    assert anew[1] == 300.0


def test_another_run_in_the_folder_is_not_gone_on_with(tmp_path: Path) -> None:
    first = begin(tmp_path, fresh=True, now=100.0)
    end(tmp_path, "the time is up")
    folder = RunFolder(Place.of(tmp_path))
    folder.begin(OTHER, overwrite=True, fresh=True, clock=lambda: 200.0)
    assert folder.fresh_since() == 200.0
    assert folder.spender("a")[0] != first[0]


def test_what_another_run_left_counts_for_none(tmp_path: Path) -> None:
    begin(tmp_path, fresh=True, now=100.0)
    folder = RunFolder(Place.of(tmp_path))
    assert folder.before(MINE, fresh=True) == Before(True, True, True, 100.0)
    for fresh in (False, True):
        assert folder.before(OTHER, fresh) == Before(False, False, False, None)
    nowhere = RunFolder(Place.of(tmp_path / "none"))
    assert nowhere.before(MINE, fresh=False) == Before(False, False, False, None)
    assert not (tmp_path / "none").exists()
