"""Names for themes: the model's where it says only what it was given, else the code's.

code_names.py    the code's own sentences, and the severity of every theme
naming.py        what the model is asked and what of its reply is taken; check.py: what is not
calls.py         the calls: at most eight, recalled like any answer
"""
