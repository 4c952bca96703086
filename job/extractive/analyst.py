"""The built-in analyst: a record in, an answer out, by rules of the language alone. Pure.

Invariant: every quote is a substring of the record's text, and every event and cause is made of the
record's own words; equal records have equal answers.
"""

from __future__ import annotations

import re

from job.extractive.conversation import conversation_answer
from job.extractive.feedback import feedback_answer
from job.extractive.operation import operation_answer
from job.extractive.reading import Reading
from job.extractive.spans import fold, grammars
from job.instructions import Language
from job.records import Answer, Record

MODEL = "extractive"
"""What stands as `model` in results that this analyst answered."""

NOTE: dict[Language, str] = {
    "en": (
        "No language model was used. Fixed rules of Chinese and English picked out the clauses "
        "that tell of failures, complaints and praise. What is said without such words is missed, "
        "irony is taken at its word, and where the text states no cause, none is given."
    ),
    "zh": (
        "本次未使用语言模型，由固定的中英文语言规则挑出表示故障、抱怨和称赞的语句。"
        "不带这类词语的问题会被漏掉，反话会按字面理解；原文没有写明原因时，不给出原因。"
    ),
}
"""What a report that this analyst made must say of itself."""

_LETTER = re.compile(r"[^\W\d_]")


def analyse(record: Record, language: Language) -> Answer:
    """What `record` says: outcome and issues. `language` is that of the suggestions."""
    low = fold(record.text)
    if not _LETTER.search(low):
        return Answer("unclear")
    reading = Reading(record, low, grammars(low), language)
    if record.kind == "operation":
        return operation_answer(reading)
    if record.kind == "conversation":
        return conversation_answer(reading)
    return feedback_answer(reading)
