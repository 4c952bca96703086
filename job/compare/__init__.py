"""The answers of two ways of asking about the same records: how far they agree. Pure.

comparison.py   everything together, as a value and as JSON; table.py: as lines for a person
 +- agreement.py    field by field, exactly and by meaning
 |   +- matching.py     the issues of a record, best to best
 |   `- meaning.py      whether two wordings mean the same
 +- positions.py    whether answers get worse towards the end of a pack, and from where
 `- verdict.py      good, bad or undecided, and why; chance.py: what chance explains
"""
