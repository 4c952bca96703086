"""Records -> packs that fit.

packing.py    what fits into one request, and the window of records that wait
held.py       how many records are held at once, for packs of any size
size.py       how big packs are best: found while they come back
 +- grid.py        the sizes they may have
 +- evidence.py    how many rows packs of each size lose
 `- cost.py        what a good record costs in packs of each size
"""
