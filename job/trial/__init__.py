"""The same part of the records asked in two ways, to compare the answers (`job.compare`).

draw.py      which records: a share of those that differ, the same ones each time
ways.py      one way of asking, carried out
kept.py      what a way was answered, so that a trial that was stopped can go on
trial.py     both ways and the first once more, compared
canary.py    a trial before a run, that chooses its mode
"""
