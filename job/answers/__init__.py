"""What a run does with the store of answers beside asking.

beside.py     the files that belong to it
care.py       lets old answers go, says what happened to the store; words.py: in which words
recalls.py    what recalling has saved
remember.py   what a run has learned, for the next ones
vectors.py    vectors of texts, kept like answers
"""
