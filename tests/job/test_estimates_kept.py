"""What runs keep for those that follow."""

from __future__ import annotations

from dataclasses import asdict
from itertools import permutations

import orjson
import pytest

from job.estimates.around import Around, RunAround, decode_around, encode_around
from job.estimates.kept import (
    ANSWERS_REMEMBERED,
    CALLS_REMEMBERED,
    RUNS_KEPT,
    Kept,
    Repeats,
    RunEstimates,
    decode_kept,
    earlier_of,
    encode_kept,
)
from job.estimates.moments import Line, Moments
from job.estimates.reserve import KindLane

FAST: KindLane = ("feedback", "fast")


def a_run(name: str, at: float, mean: float = 40.0, answers: float = 3000.0) -> RunEstimates:
    return RunEstimates(
        name,
        at,
        {FAST: Moments(answers, mean, answers * 100)},
        {FAST: Line(100.0, 5000.0, 3.0, 1e6, 500.0, 40.0)},
        Moments(100, 1.02, 0.001),
        Moments(answers, 1.01),
        Repeats(Moments(100, 0.1), Moments(10, 700, 9), Moments(10, 90, 4)),
        {"version": 1, "step": len(name)},
    )


def test_what_is_kept_comes_back() -> None:
    kept = Kept((a_run("a", 1.0), a_run("b", 2.0)))
    assert decode_kept(encode_kept(kept)) == kept


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"{}",
        b"[1]",
        b'{"version": 99, "runs": []}',
        b'{"version": 1, "runs": [{"run": "a"}]}',
        encode_kept(Kept((a_run("a", 1.0),))).replace(b"feedback/fast", b"feedback/best"),
        encode_kept(Kept((a_run("a", 1.0),)))[:-9],
    ],
)
def test_a_damaged_store_is_as_good_as_none(value: bytes | None) -> None:
    assert decode_kept(value) == Kept()


def test_two_runs_that_end_at_once_both_stay_whoever_saves_last() -> None:
    before = Kept((a_run("old", 1.0),))
    mine, theirs = a_run("mine", 2.0), a_run("theirs", 2.5)
    stores = [
        before.merged(Kept((first,))).merged(Kept((second,)))
        for first, second in permutations((mine, theirs))
    ]
    assert stores[0] == stores[1]
    assert [run.run for run in stores[0].runs] == ["old", "mine", "theirs"]


def test_saving_again_replaces_the_own_entry_and_old_runs_go() -> None:
    kept = Kept()
    for number in range(RUNS_KEPT + 3):
        kept = kept.merged(Kept((a_run(str(number), float(number), answers=10),)))
        kept = kept.merged(Kept((a_run(str(number), float(number), answers=20),)))
        kept = kept.merged(Kept((a_run(str(number), float(number), answers=10),)))
    assert [run.at for run in kept.runs] == [float(n) for n in range(3, RUNS_KEPT + 3)]
    assert all(run.answers[FAST].n == 20 for run in kept.runs)


def test_the_order_in_which_runs_were_saved_does_not_matter() -> None:
    runs = [a_run("a", 1.0, 40), a_run("b", 2.0, 60), a_run("c", 3.0, 20)]
    found = [earlier_of(Kept(tuple(order))) for order in permutations(runs)]
    assert all(each == found[0] for each in found)
    assert found[0].runs == 3
    assert found[0].packs == {"version": 1, "step": 1}


def test_earlier_runs_weigh_little_and_the_last_the_most() -> None:
    earlier = earlier_of(Kept((a_run("a", 1.0, 100.0), a_run("b", 2.0, 40.0))))
    known = earlier.answers[FAST]
    assert known.n == ANSWERS_REMEMBERED
    assert known.mean == pytest.approx(40.0, rel=0.1)
    assert earlier.seconds[FAST].n == CALLS_REMEMBERED
    assert earlier.spread == pytest.approx(42.4 / 70, rel=0.01)


def test_what_runs_take_around_their_calls_is_kept_and_the_last_counts_most() -> None:
    runs = [
        RunAround("a", 1.0, 3000, 21.0, 4, 400, 100, 2.0, {"small": 0.2, "old": 0.5}),
        RunAround("b", 2.0, 3000, 42.0, 4, 700, 100, 2.0, {"small": 0.05}),
    ]
    kept = decode_around(encode_around(Around((runs[0],)).merged(Around((runs[1],)))))
    assert kept == Around(tuple(runs))
    assert kept.seconds(3000) == pytest.approx(35.0)
    assert kept.naming is not None
    assert kept.naming.tokens_in == pytest.approx(600)
    assert kept.handed_on == pytest.approx({"small": 0.1, "old": 0.5})


def test_what_an_older_version_kept_of_a_run_is_used() -> None:
    run = asdict(RunAround("a", 1.0, 3000, 21.0, 4, 400, 100, 2.0))
    del run["handed_on"]
    assert decode_around(orjson.dumps([run])).runs[0].records == 3000


@pytest.mark.parametrize("value", [None, b"", b"{", b"[1]", b'[{"run": "a"}]'])
def test_a_damaged_account_is_as_good_as_none(value: bytes | None) -> None:
    assert decode_around(value) == Around()
    assert Around().seconds(100) is None
