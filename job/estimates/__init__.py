"""What answers, calls and runs take: learned in a run, kept for the next.

moments.py       a mean, a deviation, a line through points, from numbers that come one by one
reserve.py       output tokens to keep free; call_seconds.py: how long calls take
around.py        what a run takes around its calls; keep_around.py: has it kept
kept.py          the entries of the last runs, as the store of answers keeps them
pace.py          how long the asking still takes
"""
