"""The made days: the same every time, as their descriptions say, and scored rightly."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.clean.cleaner import Cleaner, CleanSettings
from job.mask.masking import Masker
from job.records import (
    Raw,
    Record,
    SliceCounts,
)
from scripts.days.causes import LANGS, Topic, load_causes, load_praise
from scripts.days.compose import Entry
from scripts.days.day import DAY, apportion, words_of
from scripts.days.files import CSV_HEADER
from scripts.days.provider import poison_phrase, provider_truth
from scripts.days.sample_day import write_sample_day
from scripts.days.seed_day import make_seed_day, write_seed_day
from scripts.days.truth import TrueRecord, read_truth
from serve.ask.tokens import count
from serve.simulated_truth import Truth, answer_for

DOCS = Path(__file__).resolve().parents[1] / "docs"
FILES = ("chat.jsonl", "app.log", "feedback.csv")
TOPICS = (*load_causes(), *load_praise())


@pytest.fixture(scope="module")
def seed_day() -> list[Entry]:
    return make_seed_day(seed=1, records=3000, poison=3)


def test_twelve_causes_with_six_wordings_in_each_language_for_two_kinds_or_more() -> None:
    causes = load_causes()
    assert len(causes) == 12
    assert sum(cause.share for cause in causes) == 100
    assert causes[0].share >= 40 * causes[-1].share
    for topic in TOPICS:
        assert len(topic.wordings) >= 2
        for by_language in topic.wordings.values():
            for lang in LANGS:
                assert len({w.texts for w in by_language[lang]}) >= 6, topic.name


def test_every_cause_has_nine_different_answers_in_each_language() -> None:
    for cause in load_causes():
        for lang in LANGS:
            said = [a for a in cause.answers if a["lang"] == lang]
            assert len(said) == 9, cause.name
            assert len({a["event"] for a in said}) == len({a["cause"] for a in said}) == 9


def test_the_sample_day_is_generated_byte_for_byte(tmp_path: Path) -> None:
    write_sample_day(tmp_path)
    for name in (*(f"sample-day/{file}" for file in FILES), "sample-day-truth.json"):
        assert (tmp_path / name).read_bytes() == (DOCS / name).read_bytes(), (
            f"docs/{name} is not what scripts.days.sample_day writes"
        )


def test_the_sample_day_has_all_causes_and_kinds_in_about_300_records() -> None:
    truth = read_truth(DOCS / "sample-day-truth.json").values()
    assert 290 <= len(truth) <= 310
    causes = Counter(t.cause for t in truth if t.outcome == "problem")
    assert set(causes) == {cause.name for cause in load_causes()}
    assert causes.most_common()[0][1] >= 10 * causes.most_common()[-1][1]
    assert {t.kind for t in truth} == {"conversation", "operation", "feedback"}
    assert {t.lang for t in truth} == {"zh", "en"}


def _starts(folder: Path, name: str) -> list[int]:
    """Where records start, found from the file alone."""
    content = (folder / name).read_bytes()
    starts, place = [], 0
    for line in content.splitlines(keepends=True):
        if name != "app.log" or line.startswith(b"2026-"):
            starts.append(place)
        place += len(line)
    return starts[1:] if name == "feedback.csv" else starts


def test_positions_of_the_truth_are_the_byte_offsets_of_the_records() -> None:
    truth = read_truth(DOCS / "sample-day-truth.json")
    for name in FILES:
        expected = _starts(DOCS / "sample-day", name)
        assert sorted(p for source, p in truth if source == name) == expected


def test_the_truth_about_a_record_is_about_that_record() -> None:
    phrases = {topic.name: topic.phrases() for topic in TOPICS}
    for (source, position), true in read_truth(DOCS / "sample-day-truth.json").items():
        rest = (DOCS / "sample-day" / source).read_bytes()[position:].decode()
        if source == "chat.jsonl":
            text = "\n".join(m["content"] for m in orjson.loads(rest.split("\n")[0])["messages"])
        elif source == "feedback.csv":
            text = next(csv.reader(io.StringIO(rest)))[3]
        else:
            first, *more = rest.split("\n")
            until = next((i for i, line in enumerate(more) if line.startswith("2026-")), None)
            text = "\n".join([first, *more[:until]])
        found = {name for name, ps in phrases.items() if any(p in text for p in ps)}
        assert found == ({true.cause} if true.cause else set())


def test_phrases_are_found_in_exactly_the_records_of_their_cause(seed_day: list[Entry]) -> None:
    for topic in TOPICS:
        phrases = topic.phrases()
        for entry in seed_day:
            assert any(p in entry.text for p in phrases) == (entry.cause == topic.name)


def test_no_phrase_holds_anything_that_masking_could_change() -> None:
    for topic in TOPICS:
        for phrase in topic.phrases():
            assert all(char.isalpha() or char == " " for char in phrase)
            assert len(phrase) >= 5


def test_the_seed_day_is_as_described(seed_day: list[Entry]) -> None:
    tokens = [count(entry.text) for entry in seed_day]
    assert len(seed_day) == 3000
    assert 120 <= sum(tokens) / 3000 <= 140
    assert sum(600 <= n <= 1500 for n in tokens) == pytest.approx(0.04 * 3000, abs=3)
    assert max(tokens) <= 1500
    outcomes = Counter(entry.outcome for entry in seed_day)
    assert outcomes == {"problem": 1349, "normal": 1348, "positive": 300, "refused": 3}
    kinds = Counter(entry.kind for entry in seed_day)
    assert min(kinds.values()) >= 800


def test_no_two_records_of_the_seed_day_consist_of_the_same_words(seed_day: list[Entry]) -> None:
    assert len({words_of(entry.text) for entry in seed_day}) == 3000


def test_poison_is_in_the_refused_records_alone(seed_day: list[Entry]) -> None:
    for entry in seed_day:
        assert (poison_phrase() in entry.text) == (entry.outcome == "refused")


def test_the_same_seed_gives_the_same_day_and_another_seed_another(tmp_path: Path) -> None:
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        write_seed_day(tmp_path / name, seed=seed, records=120)
    for file in (*(f"input/{name}" for name in FILES), "truth.json", "provider.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    chats = [(tmp_path / name / "input/chat.jsonl").read_bytes() for name in ("a", "c")]
    assert chats[0] != chats[1]


def test_the_simulated_provider_answers_every_record_as_the_truth_says(
    seed_day: list[Entry],
) -> None:
    truth = Truth.model_validate(provider_truth())
    answers: dict[str, set[tuple[str, str]]] = {}
    for entry in seed_day:
        answer = answer_for(truth, entry.text, "zh")
        if entry.outcome != "refused":
            assert answer["outcome"] == entry.outcome
        assert len(answer["issues"]) == (entry.cause is not None)
        for issue in answer["issues"]:
            assert issue["quote"] in entry.text
            answers.setdefault(str(entry.cause), set()).add((issue["event"], issue["cause"]))
    for cause in load_causes():
        assert len(answers[cause.name]) >= 6, "a cause is worded in too few ways on this day"


def _raw_records(folder: Path, truth: list[TrueRecord]) -> Iterator[tuple[TrueRecord, Raw]]:
    """The records of a day as reading hands them to cleaning."""
    for name in FILES:
        content = (folder / name).read_bytes()
        own = [true for true in truth if true.source == name]
        ends = [*(true.position for true in own[1:]), len(content)]
        for true, end in zip(own, ends, strict=True):
            text = content[true.position : end].decode().rstrip("\n")
            if name == "chat.jsonl":
                yield true, Raw(name, true.position, orjson.loads(text), "json")
            elif name == "feedback.csv":
                cells = next(csv.reader(io.StringIO(text)))
                row = dict(zip(CSV_HEADER.strip().split(","), cells, strict=True))
                yield true, Raw(name, true.position, row, "csv")
            else:
                yield true, Raw(name, true.position, text, "text")


@pytest.mark.slow
def test_after_cleaning_nothing_folds_and_every_record_is_still_what_it_was(
    tmp_path: Path,
) -> None:
    truth = write_seed_day(tmp_path, seed=1, records=3000, poison=3)
    known = Truth.model_validate(provider_truth())
    settings = CleanSettings(DAY.date(), UTC, Masker(b"key"))
    cleaner = Cleaner(settings, SliceCounts("day", 0))
    digests = set()
    for true, raw in _raw_records(tmp_path / "input", truth):
        record = cleaner.clean(raw)
        assert isinstance(record, Record)
        assert record.kind == true.kind
        assert len(answer_for(known, record.text, "zh")["issues"]) == (true.cause is not None)
        assert (poison_phrase() in record.text) == (true.outcome == "refused")
        digests.add(record.digest)
    assert len(digests) == 3000
    assert cleaner.counts.masked["email"] > 0
    assert cleaner.counts.masked["phone"] > 0


def _records_of(topic: Topic, day: list[Entry]) -> int:
    return sum(entry.cause == topic.name for entry in day)


def test_frequencies_follow_the_shares(seed_day: list[Entry]) -> None:
    for cause in load_causes():
        assert _records_of(cause, seed_day) == pytest.approx(1349 * cause.share / 100, abs=1)


@given(
    st.lists(st.floats(0.1, 100), min_size=1, max_size=12),
    st.integers(0, 3),
    st.integers(0, 4000),
)
def test_apportion_adds_up_and_keeps_the_least(shares: list[float], least: int, total: int) -> None:
    if total < least * len(shares):
        with pytest.raises(ValueError, match="too few"):
            apportion(shares, total, least)
        return
    parts = apportion(shares, total, least)
    assert sum(parts) == total
    assert min(parts) >= least
