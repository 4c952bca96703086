"""What stands behind the commands beside `run` and `report`.

preview.py          `fupan plan`; first_look.py: the first records of each file
check.py            `fupan check`
compare.py          `fupan compare`
inspect_theme.py    `fupan show`
simulate.py         `fupan simulate`
*_command.py        their parameters, as the command line reads them
"""
