"""Records that say the same -> one that stands for them, and back to results.

folding.py     who came first, by digest: the shards and what a block of records claims
template.py    what varies in an operation log becomes a placeholder
 +- codes.py       what never varies: status and error codes
 `- instances.py   users, hosts, paths, requests and dates, which do
join.py        folded records -> results, behind the answer of the one that stands for them
varied.py      between which values they varied
"""
