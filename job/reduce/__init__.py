"""Results -> totals of bounded size, and what follows from them.

counting.py          the only counting there is
totals.py            what is counted; tallies.py: by name or minute, bounded; pieces.py: evidence
again.py             a second look at the results, for what the first said to look for
incidents.py         themes that broke out together at one place
contradictions.py    records that say two things; promises.py: what an assistant promised
"""
