"""The labelled questions over the sample day are what `scripts.search_quality` says of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from scripts.days.truth import read_truth
from scripts.search_quality import GRID, TRUTH, Asked, held_out, read_questions

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


def question(cause: str, right: int, share: float = 1.0) -> Asked:
    """Words put 1 first and 2 second, the meaning the other way round."""
    lists = {"words": [1, 2, 3], "meaning": [2, 1, 4]}
    return Asked("en", cause, lists, share, frozenset((right,)))


def test_a_question_is_not_asked_with_the_weight_that_was_chosen_by_it() -> None:
    by_words = [question(cause, right=1) for cause in ("a", "b", "c")]
    assert held_out(by_words)[0] == [1, 1, 1]
    # The one that would be answered by meaning is asked as is best for the others, and those as is
    # best for each other.
    ranks, chosen = held_out([*by_words, question("d", right=2), question("d", right=2)])
    assert ranks[3:] == [0.5, 0.5]
    assert sum(chosen.values()) == 4
    assert set(chosen) <= set(GRID)


def test_the_reciprocal_rank_is_of_the_first_right_one_of_ten() -> None:
    lists = {"words": list(range(20)), "meaning": [19]}
    asked = Asked("en", "a", lists, 1.0, frozenset((4, 8)))
    assert asked.reciprocal_rank(("words",)) == 1 / 5
    assert Asked("en", "a", lists, 1.0, frozenset((11,))).reciprocal_rank(("words",)) == 0
    assert Asked("en", "a", lists, 1.0, frozenset((19,))).reciprocal_rank(("meaning",)) == 1
