"""The caches of answers, each off unless it is asked for.

    partition.py  which requests may share an answer, and the key of one
    caches.py     one request looked up in each cache it may use, and its answer kept
    store.py      where answers are: key -> bytes, bounded, for a time
    ttl.py        for how long
    good.py       which answers are worth it
    kept.py       an answer as it is stored
    near.py       questions that say the same words in another form
    simhash.py    fingerprints of questions, and how alike two texts are
    semantic.py   questions that mean the same
    agree.py      whether two texts agree in numbers, names, negation and direction
    recheck.py    a share of the hits asked live, to tell how many were wrong

Invariant: an answer never leaves its partition, and what is kept is whole.
"""
