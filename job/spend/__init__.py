"""What a run may spend and has spent; the budget itself is `serve/ask/spend.py`.

spending.py    settings -> purse; journal -> the money of the ledger
continued.py   that a run goes on with its own account
prices.py      whether prices are known; money.py: amounts as people read them
"""
