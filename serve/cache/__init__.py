"""The caches of answers, each off unless it is asked for.

    partition.py  which requests may share an answer, and the key of one
    caches.py     one request looked up in each cache it may use, and its answer kept
    store.py      where answers are: key -> bytes, bounded, for a time
    ttl.py        for how long
    good.py       which answers are worth it
    kept.py       an answer as it is stored
    near.py       questions that say the same words in another form
    semantic.py   questions that mean the same
    agree.py      what a question asks: its form and its meaning
    recheck.py    a share of the hits asked live, to tell how many were wrong

Invariant: an answer never leaves its partition, and what is kept is whole.
"""
