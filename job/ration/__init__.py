"""Who goes first where there is no time or no money for all.

importance.py    what matters most; window.py: records that wait, in that order
deadline.py      when the asking must end; closing.py: what comes after it, learned from runs
"""
