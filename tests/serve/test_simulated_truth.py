"""The truth file: what is read from it and what is said because of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from serve.simulated import Truth, load_truth
from serve.simulated_truth import answer_for, language_asked_for
from tests.serve.simulated_requests import TRUTH


def test_a_file_is_read_as_documented(tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    path.write_text(TRUTH.model_dump_json(), encoding="utf-8")
    assert load_truth(path) == TRUTH


@pytest.mark.parametrize(
    "wrong",
    [
        {"cause": []},
        {"causes": [{"name": "a", "phrases": []}]},
        {"causes": [{"name": "a", "phrases": ["x"], "answers": []}]},
        {"causes": [{"name": "a", "phrases": ["x"], "answers": [{"event": "e"}]}]},
        {"causes": [{"name": "a", "phrases": [""], "outcome": "normal"}]},
        {"default": {"outcome": "problem"}},
    ],
)
def test_a_file_that_makes_no_sense_is_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(wrong))
    with pytest.raises(ValidationError):
        load_truth(path)


@pytest.mark.parametrize(
    ("system", "lang"),
    [
        ("Analyse the records. Answer in Chinese.", "zh"),
        ("Records are Chinese or English. Write every field in English.", "en"),
        ("请分析下面的记录，并用中文回答。", "zh"),
        ("请分析下面的记录，并用英文回答。", "en"),
        ("请分析下面的记录，只输出 JSON。", "zh"),
        ("Analyse the records.", None),
        ("", None),
    ],
)
def test_the_language_asked_for_is_recognised(system: str, lang: str | None) -> None:
    assert language_asked_for(system) == lang


def test_wordings_vary_from_record_to_record_but_not_for_one() -> None:
    answers = [answer_for(TRUTH, f"{i} connection refused", "en") for i in range(40)]
    assert {a["issues"][0]["event"] for a in answers} == {"No connection", "Refused"}
    assert answers[3] == answer_for(TRUTH, "3 connection refused", "en")


def test_a_wording_for_every_language_serves_any() -> None:
    assert answer_for(TRUTH, "great", "zh")["issues"][0]["event"] == "A user praised it"


def test_another_language_is_better_than_none() -> None:
    truth = Truth.model_validate(
        {
            "causes": [
                {
                    "name": "a",
                    "phrases": ["x"],
                    "answers": [{"lang": "en", "event": "e", "cause": "c", "suggestion": "s"}],
                }
            ]
        }
    )
    assert answer_for(truth, "x", "zh")["issues"][0]["event"] == "e"


def test_a_record_without_a_phrase_gets_the_default() -> None:
    assert answer_for(Truth(), "x", None) == {"outcome": "normal", "issues": []}
    unclear = Truth.model_validate({"default": {"outcome": "unclear"}})
    assert answer_for(unclear, "x", None) == {"outcome": "unclear", "issues": []}
