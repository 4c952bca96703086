"""What a day is compared with: earlier runs, and problems that the team knows of.

baseline.py    earlier runs, found and read
changes.py     what became of each theme since
known.py       known.yaml and what it says of a theme; known_file.py: changing it
"""
