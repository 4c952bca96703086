"""Raw records of any shape -> records, rejections and what a filter left out.

cleaner.py   one raw record -> Record | Rejected | Skipped
draft.py     what it says: its kind, its text and its fields (fields.py)
 +- shape.py     which field is what, by name; scales.py: levels and ratings
 +- turns.py     the turns of a conversation
 +- head.py      the time and level a line of a log begins with
 +- nested.py    a record inside the message of another
 `- render.py    any object as one line for reading
"""
