"""What stands behind the commands beside `run` and `report`.

preview.py          `fupan plan`; first_look.py: the first records of each file
 +- preview_found.py    what is found, file by file and in all
 +- preview_packs.py    the packs of the run; preview_answers.py: the tokens of their answers
 +- preview_canary.py   the calls of its canary
 +- preview_asking.py   the time they take, through the limiter; preview_naming.py: naming themes
 +- preview_numbers.py  all numbers with their ranges; preview_bound.py: what the time depends on
 `- preview_lines.py    the plan in words
check.py            `fupan check`
compare.py          `fupan compare`
inspect_theme.py    `fupan show`
simulate.py         `fupan simulate`
*_command.py        their parameters, as the command line reads them
"""
