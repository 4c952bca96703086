"""What concerns a corpus: a day of records in, a retrospective out. `pipeline.py` and `run.py` are
the flow, accounting.py is what it leaves of itself beside its results:

    read -> clean (mask) -> fold -> analyse -> themes -> naming -> reduce -> report
                                     `- extractive, without a model    `- history, the days before

read        files -> raw records              themes      issues -> groups that share a cause
clean       raw -> records; mask: what is     naming      what the groups are called
            private                           reduce      results -> counts
fold        equal records -> one              history     earlier runs, known problems
analyse     records -> answers of a model     report      counts -> pages and files
extractive  the same by rules                 storage     files here and on object storage

instructions.py, own_instructions.py: what the model is told; compress: long ones made short
pack        records -> packs that fit         estimates   what answers and calls take, learned
ration      who goes first where there is     spend       what a run may cost and costs
            no time or money for all          answers     the care of what was paid for
trial       records asked in two ways; compare: how far the answers agree
commands    what stands behind `fupan plan`, `check`, `show`, ...; cli.py: the command itself
"""
