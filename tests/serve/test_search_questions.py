"""The labelled questions over the sample day are what `scripts.search_quality` says of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from scripts.days.truth import read_truth
from scripts.search_quality import TRUTH, read_questions

DAY = Path(__file__).resolve().parents[2] / "docs" / "sample-day"


def test_there_are_fifty_questions_half_of_them_chinese_and_all_have_answers() -> None:
    questions = read_questions()
    causes = {each.cause for each in read_truth(TRUTH).values()}
    assert Counter(each["lang"] for each in questions) == {"en": 25, "zh": 25}
    assert len({each["question"] for each in questions}) == 50
    assert all(each["cause"] in causes for each in questions)


def test_no_question_is_worded_as_a_record_is() -> None:
    said = "".join(file.read_text(encoding="utf-8") for file in sorted(DAY.iterdir())).lower()
    for each in read_questions():
        question, half = each["question"].lower(), len(each["question"]) * 2 // 3
        for start in range(len(question) - half + 1):
            assert question[start : start + half] not in said, each
