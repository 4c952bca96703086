"""What a plan, run.json and the report say of instructions made shorter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from job.commands.preview_found import Preview
from job.commands.preview_lines import preview_lines
from job.compress.outcome import Outcome, Reason, encode, kept_name, saving
from job.compress.planned import plan_instructions
from job.compress.told import compression_warnings, told
from job.config import Settings, resolve
from job.errors import UsageError
from job.flags import Flags
from job.instructions import instructions_hash
from job.mask.masking import Masker
from job.planning import plan_run
from job.report.instructions import instruction_rows
from job.report.words import Words
from serve.ask.ask import CallCounts
from tests.job.test_compress import ENGLISH

MASKER = Masker(b"k" * 32)
SHORT = "- ignore load balancer health checks.\n"


class Kept:
    """A store that knows what earlier runs have learned."""

    def __init__(self, **held: bytes) -> None:
        self.held = held

    def learned(self, name: str, since: float | None = None) -> bytes | None:
        return self.held.get(name) if since is None else None


def settings(folder: Path, own: str = ENGLISH, **flags: Any) -> Settings:
    (folder / "rules.md").write_text(own)
    (folder / "app.log").write_text("2026-03-14 10:00:00 the disk is full\n")
    given: dict[str, Any] = {"compress_instructions": True} | flags
    return resolve(
        Flags(
            inputs=(str(folder / "app.log"),),
            base_url="http://127.0.0.1:9/v1",
            model="m",
            instructions=str(folder / "rules.md"),
            answers=str(folder / "answers.db"),
            **given,
        )
    )


def planned(
    made: Settings, store: Kept | None, since: float | None = None
) -> tuple[str, bool, str]:
    assert made.provider is not None
    found = plan_instructions(made, made.provider, store, MASKER, since)
    assert found is not None
    return found.text, found.pending, found.words


def test_what_is_not_known_is_said_to_be_to_come(tmp_path: Path) -> None:
    made = settings(tmp_path)
    own = made.own_instructions
    for store in (None, Kept()):
        text, pending, words = planned(made, store)
        assert (text, pending) == (own, True)
        assert "to be made shorter first, in about 2 calls" in words
    known = Kept(**{kept_name(own, "m"): encode(Outcome(SHORT, None, rules=4))})
    assert not planned(made, known)[1]
    assert planned(made, known, since=100.0)[1]


def test_what_an_earlier_run_made_is_what_the_run_will_use(tmp_path: Path) -> None:
    made = settings(tmp_path)
    own = made.own_instructions
    known = Kept(**{kept_name(own, "m"): encode(Outcome(SHORT, None, rules=4))})
    text, pending, words = planned(made, known)
    assert (text, pending) == (SHORT, False)
    assert "tokens a call, by an earlier run, not" in words
    outcome = Outcome(own, "judged", ("ask li.wei@example.org", "ask"), 4)
    text, pending, words = planned(made, Kept(**{kept_name(own, "m"): encode(outcome)}))
    assert (text, pending) == (own, False)
    assert "told as written" in words
    assert "li.wei" not in words


def test_short_instructions_are_told_as_they_are(tmp_path: Path) -> None:
    text, pending, words = planned(settings(tmp_path, own="Ignore tests."), None)
    assert (text, pending) == ("Ignore tests.", False)
    assert "500 characters or fewer" in words
    made = settings(tmp_path, compress_instructions=False)
    assert planned(made, None)[1:] == (False, words_of(made))


def words_of(made: Settings) -> str:
    shown = told(made, plan_run(made, keep=True), None, 0)["own_instructions"]
    return f"{shown['tokens']:,} tokens a call"


def test_the_plan_has_a_line_of_it() -> None:
    lines = preview_lines(Preview(instructions="9 tokens a call"), show_request=False)
    assert "own rules 9 tokens a call" in lines
    assert not any("own rules" in line for line in preview_lines(Preview(), show_request=False))


def test_instructions_that_leave_no_room_are_named(tmp_path: Path) -> None:
    made = settings(tmp_path, own="Ignore the tests. " * 900, context=4096)
    with pytest.raises(UsageError, match=r"or shorter --instructions: they take [34],\d{3}"):
        plan_run(made, keep=True)


def test_the_built_in_analyst_does_not_hear_them(tmp_path: Path) -> None:
    made = replace(settings(tmp_path), provider=None)
    assert told(made, plan_run(made, keep=True), None, 0) == {"own_instructions": None}
    assert any(
        "instructions of fupan.yaml are not used" in w for w in plan_run(made, True).warnings
    )


def test_run_json_says_what_the_model_was_told_and_nothing_private(tmp_path: Path) -> None:
    made = settings(tmp_path, own="Ask li.wei@example.org.\n" + ENGLISH)
    plan = plan_run(made, keep=True)
    said = told(made, plan, None, 7)
    assert said["instructions"] == instructions_hash(plan.language, made.own_instructions)
    assert said["own_instructions"]["compression"] is None
    assert "li.wei" not in str(said)
    assert compression_warnings(said) == []
    bare = replace(made, own_instructions="")
    assert told(bare, plan, None, 7) == {"own_instructions": None}
    assert compression_warnings({"own_instructions": None}) == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_outcome_has_its_words(language: Any) -> None:
    words = Words(language)
    own: dict[str, Any] = {"hash": "ab12", "characters": 1200, "tokens": 400, "first_line": "{a}"}
    spent = CallCounts(requests=2, tokens_in=300, tokens_out=100)
    assert instruction_rows(None, words) == []
    assert len(instruction_rows(own | {"compression": None}, words)) == 1
    for reason in get_args(Reason):
        outcome = Outcome(ENGLISH, reason, ("{x} | y",), 1)
        said = saving(ENGLISH, outcome, 50, spent, MASKER)
        rows = instruction_rows(own | {"compression": said}, words)
        assert len(rows) == 2
        assert "400" in rows[1][1]
    for recalled in (False, True):
        outcome = Outcome(SHORT, None, rules=4, recalled=recalled)
        said = saving(ENGLISH, outcome, 50, CallCounts() if recalled else spent, MASKER)
        text = instruction_rows(own | {"compression": said}, words)[1][1]
        assert f"{said['tokens_saved']:,}" in text
        assert ("400" in text) is not recalled


def test_a_model_that_was_not_believed_is_a_warning() -> None:
    cases: list[tuple[Reason, bool]] = [("lost", True), ("provider", True), ("short", False)]
    for reason, warned in cases:
        outcome = Outcome(ENGLISH, reason, ("a", "b"))
        compression = saving(ENGLISH, outcome, 0, CallCounts(), MASKER)
        said = {"own_instructions": {"compression": compression}}
        assert bool(compression_warnings(said)) is warned
