"""Search over what runs have left: records, issues and themes, by words and by meaning.

    settings.py    the `search` section of fupan.yaml (state.py: where its folders are)
    runs.py        the folders of runs that there are
    folders.py     files below a folder, never through a link
    documents.py   one run -> the documents that are searched
    words.py       text -> words, of English and Chinese
    postings.py    which documents have which words, scored by BM25
    vectors.py     vectors of texts, kept in Parquet
    embedding.py   texts -> vectors (own_encoder.py: by the bundled model; served_encoder.py: by one
                   of the cluster; space.py: whose vectors they are)
    nearest.py     the vectors nearest to one (graphs.py: graphs over many, kept on disk)
    segment.py     the index of one run, and its filters (mapped.py: its files in memory)
    indexer.py     runs -> index (missing.py: which vectors a run lacks; backlog.py, holders.py:
                   which others have them; grapher.py: which graphs; shelf.py, seal.py: segments on
                   disk, and what others changed there; catalog.py: what there is; leftovers.py:
                   what nothing names; upkeep.py: when)
    query.py       what is looked for (meaning.py: its vector)
    view.py        all that a tenant sees, searched (snapshot.py: the index at one moment)
    answers.py     what was found, as it is told
    reports.py     which files of a run are shown, and how safely
    server.py      one replica (deployment.py: on Ray Serve)

Invariant: what is known of a run comes from the files that docs/output.md describes, and nothing
here imports `job`; only deployment.py knows of Ray.
"""
