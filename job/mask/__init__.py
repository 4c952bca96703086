"""What is private in a text becomes an alias, before anything leaves the process.

masking.py       the finders together, and the keyed aliases
 +- private.py       addresses, phones, national ids, cards, IPs
 +- papers.py        papers, plates, accounts, ids of messengers
 +- credentials.py   passwords, tokens and keys, by their names; token_forms.py: by their form
 `- one_time.py      codes and links that let their bearer in
field_names.py   fields that are private as a whole; source_names.py: names of files
shadow.py        a text as the finders look at it
"""
