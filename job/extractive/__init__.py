"""The built-in analyst: no model, no network, rules of Chinese and English.

analyst.py       a record in, an answer out
 +- operation.py     entries of a log, by level and by words
 +- conversation.py  what the user reports, what the assistant admits
 `- feedback.py      reviews: complaints and praise, by rating and by words
issues.py        clauses -> issues        wording.py  short words, severity, suggestion
cause.py         why, as the text says    machine.py  exceptions, fields, statuses
tone.py          how a clause is meant    spans.py    turns, sentences, clauses
english.py, chinese.py   the two languages, as a grammar.py
"""

from job.extractive.analyst import MODEL, NOTE, analyse

__all__ = ["MODEL", "NOTE", "analyse"]
