"""The same records in two ways, against a provider on a real port that fades, or does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from job.clean.cleaner import CleanSettings
from job.errors import StoppedEarly, UsageError
from job.mask.masking import Masker
from job.read import plan_inputs
from job.records import Kind
from job.trial import draw as drawing
from job.trial.draw import Drawn, draw
from job.trial.trial import part_of
from serve.simulated import SimulatedProvider
from tests.job.trials import FADES_FROM, NoCap, ask_both, compared, day, provider_settings

RECORDS = 150


@pytest.mark.slow
@pytest.mark.parametrize("fades_as", ["wrong", "normal", "missing"])
def test_fading_is_found_and_where_it_begins(fades_as: str) -> None:
    records = day(RECORDS)
    settings = provider_settings(fades_from=FADES_FROM, fades_as=fades_as)
    with SimulatedProvider(settings) as server:
        _, sides = ask_both(server, records)
    found = compared(sides)
    assert (found.verdict.word, found.verdict.reason) == ("bad", "fades")
    assert found.verdict.position is not None
    # A third of the records is normal anyhow: those say nothing of answers that fade to normal.
    assert abs(found.verdict.position - FADES_FROM) <= (2 if fades_as == "normal" else 0)
    for side in sides[:2]:
        assert [result.record for result in side.results] == records
        assert side.count("answered") == RECORDS


@pytest.mark.slow
def test_honest_packs_are_good_and_every_call_is_counted() -> None:
    records, spend = day(RECORDS), NoCap()
    with SimulatedProvider(provider_settings()) as server:
        trial, sides = ask_both(server, records, spend)
        stats = server.stats()
    found = compared(sides)
    assert (found.verdict.word, found.verdict.reason) == ("good", "alike")
    single, packed, again = sides
    assert single.calls.requests == RECORDS
    assert again.calls.requests == part_of(RECORDS) == 60
    assert packed.calls.requests < 12
    calls = [side.calls for side in sides]
    assert sum(each.requests for each in calls) == stats["requests"] == spend.attempts
    assert sum(each.tokens_in for each in calls) == stats["prompt_tokens"]
    # What a run could store: an answer of each mode for each record, under keys of their own.
    keys = [set(trial.kept[mode].rows) for mode in ("single", "packed")]
    assert [len(each) for each in keys] == [RECORDS, RECORDS]
    assert not keys[0] & keys[1]
    # One dollar a million tokens in, two out.
    money = sum(side.money or 0 for side in sides) * 1_000_000
    assert money == stats["prompt_tokens"] + 2 * stats["completion_tokens"]
    assert {place.size for place in packed.places.values()} != {1}
    assert single.places == {}


@pytest.mark.slow
def test_packs_of_few_records_are_no_proof_for_long_ones() -> None:
    records = day(50)
    kinds: tuple[Kind, ...] = ("operation", "feedback", "conversation")
    mixed = [replace(each, kind=kinds[n % 3]) for n, each in enumerate(records)]
    with SimulatedProvider(provider_settings(fades_from=20, fades_as="wrong")) as server:
        _, sides = ask_both(server, mixed, of=500)
    found = compared(sides).verdict
    assert (found.word, found.reason, found.longest) == ("undecided", "short_packs", 17)


@pytest.mark.slow
def test_a_tenth_of_a_day_has_packs_as_long_as_the_day() -> None:
    with SimulatedProvider(provider_settings()) as server:
        _, sides = ask_both(server, day(300), of=3000)
    found = compared(sides).verdict
    assert (found.word, found.reason) == ("good", "alike")


@pytest.mark.slow
def test_rows_lost_anywhere_in_a_pack_are_no_fading() -> None:
    settings = provider_settings(row_faults=((0, 0.1), (100_000, 0.1)))
    with SimulatedProvider(settings) as server:
        _, sides = ask_both(server, day(RECORDS))
    found = compared(sides)
    assert found.verdict.reason == "alike"
    assert sum(not one.place.came for one in found.seen) > 5


@pytest.mark.slow
def test_an_account_that_is_empty_stops_it() -> None:
    settings = provider_settings(quota_after=1)
    with SimulatedProvider(settings) as server, pytest.raises(StoppedEarly):
        ask_both(server, day(70))


@pytest.mark.slow
def test_a_wrong_model_stops_it_with_exit_code_2() -> None:
    settings = provider_settings(models=("another",))
    with SimulatedProvider(settings) as server, pytest.raises(UsageError):
        ask_both(server, day(3))


def drawn_from(path: Path, share: float) -> Drawn:
    plan = plan_inputs([str(path)], reference=date(2026, 3, 14), zone=UTC)
    cleaning = {
        file.source: CleanSettings(date(2026, 3, 14), UTC, Masker(b"key")) for file in plan.files
    }
    return draw(plan.slices, cleaning, share)


def write_log(path: Path, texts: list[str]) -> Path:
    stamp = datetime(2026, 3, 14, 10, tzinfo=UTC).strftime("%Y-%m-%d %H:%M:%S")
    path.write_text("".join(f"{stamp} INFO {text}\n" for text in texts))
    return path


WORDS = [f"{a}{b}{c}" for a in "bcdfgklmn" for b in "aeiou" for c in "pqrstvwxz"]


def test_a_share_of_what_differs_is_drawn_each_once(tmp_path: Path) -> None:
    texts = [f"page {word} served" for word in WORDS[:400]]
    drawn = drawn_from(write_log(tmp_path / "a.log", texts * 3), 0.25)
    assert drawn.distinct == 400
    assert len(drawn.records) == 100
    assert len({record.digest for record in drawn.records}) == 100
    # In another order, and each once, they are the same.
    again = drawn_from(write_log(tmp_path / "b.log", texts[::-1]), 0.25)
    assert {r.digest for r in again.records} == {r.digest for r in drawn.records}


def test_few_records_are_all_drawn(tmp_path: Path) -> None:
    texts = [f"page {word} served" for word in WORDS[:30]]
    drawn = drawn_from(write_log(tmp_path / "a.log", texts), 0.1)
    assert (len(drawn.records), drawn.distinct) == (30, 30)


def test_of_many_no_more_are_held_than_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "MOST", 80)
    monkeypatch.setattr(drawing, "COUNTED", 100)
    texts = [f"page {word} served" for word in WORDS[:400]]
    drawn = drawn_from(write_log(tmp_path / "a.log", texts), 0.5)
    assert len(drawn.records) == 80
    # The estimate of 100 digests is within 30 % 998 times in 1,000.
    assert 280 <= drawn.distinct <= 520
