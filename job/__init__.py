"""What concerns a corpus: a day of records in, a retrospective out. `pipeline.py` and `run.py` are
the flow:

    read -> clean (mask) -> fold -> analyse -> themes -> naming -> reduce -> report
                                     `- extractive, without a model    `- history, the days before

read        files -> raw records              themes      issues -> groups that share a cause
clean       raw -> records; mask: what is     naming      what the groups are called
            private                           reduce      results -> counts
fold        equal records -> one              history     earlier runs, known problems
analyse     records -> answers of a model     report      counts -> pages and files
extractive  the same by rules                 storage     files here and on object storage

estimates   what answers and calls take, learned in a run and kept for the next (estimates*.py,
            reserve.py, call_seconds.py)
trial       the same records asked in two ways; compare: how far the answers agree; canary.py: a
            trial before a run
compress    long instructions of a team (own_instructions.py) -> short ones with the same rules
commands    what stands behind `fupan plan`, `check`, `show`, ...; cli.py: the command itself
"""
