"""What a question says, as far as code can read it in Chinese and English.

    words.py      a question as words, each with what it does there
    english.py, chinese.py, tables.py   what words mean, from english.txt and chinese.txt
    numbers.py    numbers in digits and in words as values
    negation.py   what is negated
    direction.py  who does it to whom, from where to where

Invariant: pure; `serve.cache.agree` decides.
"""
