"""How much memory a replica of the search takes: `python -m scripts.benchmarks.search_memory DIR`.

In a process of its own, so that nothing counts but the index in DIR, opened and asked.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import psutil

from serve.search.catalog import Catalog
from serve.search.query import read_query
from serve.search.settings import EVERYBODY
from serve.search.snapshot import Snapshot

QUERIES = 400


def main() -> None:
    """Command line."""
    state = Path(sys.argv[1])
    before = psutil.Process().memory_info()
    catalog = Catalog.read(state)
    if catalog is None:
        raise SystemExit(f"no index in {state}")
    view = Snapshot.load(state, catalog).view(EVERYBODY)
    vectors = np.load(state / "graphs" / catalog.graphs[0].folder / "vectors.npy", mmap_mode="r")
    for number in np.linspace(0, len(vectors) - 1, QUERIES).astype(int):
        segment = view.segments[number % len(view.segments)]
        text = segment.documents["text"][int(number) % len(segment)].as_py()
        query = {"query": " ".join(text.split()[:6])}
        view.search(read_query(query), vectors[number])
        view.search(read_query({**query, "severity": "critical"}), vectors[number])
    after = psutil.Process().memory_info()
    pages = after.shared - before.shared
    print(
        f"memory of a replica: {(after.rss - before.rss - pages) / 1e9:.2f} GB of its own and "
        f"{pages / 1e9:.2f} GB of pages of files, which the replicas of a node share and which are "
        "given back when memory is short"
    )


if __name__ == "__main__":
    main()
