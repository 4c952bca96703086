"""Records -> results: the asking actor, what it sends and what it does with each reply.

analyst.py     the actor, and the built-in analyst in its place
dispatch.py    records in, results out: recall, packs formed when their permit comes
 +- outcomes.py    what becomes of each record
 +- waiting.py     what waits for a permit; entries.py: one record on its way
 +- routing.py     how several models share the records; tiers.py: which begins, which is next
 +- requests.py    items -> the request that asks about them
 +- learning.py    what replies teach for the packs that follow; learned.py: kept between runs
 `- contract.py    what came back or went wrong -> what is done with each item
parts.py       a record too big for a pack, in parts
stored.py      answers as the store keeps them
patience.py    when a provider that does not answer is given up; owner.py: whom all this is for
"""
