"""The built-in analyst: no model, no network, rules of Chinese and English.

analyst.py       a record in, an answer out
 +- operation.py     entries of a log, by level and by words; machine.py: exceptions, fields
 +- conversation.py  what the user reports, what the other side admits
 `- feedback.py      reviews: complaints and praise, by rating and by words
reading.py       the record's clauses; spans.py cuts them, tone.py says how they are meant
issues.py        clauses -> issues: event.py, cause.py, wording.py, advice.py
grammar.py       what a language tells all these: english*.py, chinese*.py
"""

from job.extractive.analyst import MODEL, NOTE, analyse

__all__ = ["MODEL", "NOTE", "analyse"]
