"""The closed lists of what may differ between two questions that ask the same.

    english.py, chinese.py                   the form: manners, final punctuation, spellings
    english_meaning.py, chinese_meaning.py   the meaning: a few other words, another order

Invariant: pure; every list names what may differ, and whatever is in none of them must be the same.
`serve.cache.agree` puts them together.
"""
