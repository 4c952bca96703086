"""Long instructions made short by the model, once, and used only if every rule survived.

calls.py       the calls: shorten, ask again, judge; recalled under the hash of the text
 +- asking.py      what the model is asked and how its replies are read
 +- outcome.py     what came of it, as it is kept, and what it saved
 `- rules.py       a text <-> its rules
check.py       a rule and its short form -> what was lost or added
 +- facts.py       numbers, terms, names and grades of a rule
 +- deciding.py    words that turn a rule around: not, unless, at least, only, 不, 除非, 至少, 仅
 `- content.py     all other words: what each part of a rule is about
"""
