"""An answer with vectors, read: the other side of `wire.py`.

Invariant: whatever the answer holds, the outcome is one row an input, in the inputs' order, or an
Unavailable.
"""

from __future__ import annotations

from base64 import b64decode

import numpy as np
import orjson

from serve.ask.errors import Unavailable
from serve.embedding.engine import Vectors


def read_answer(answer: bytes, count: int) -> Vectors:
    """The vectors of an answer in base64 to so many inputs. Raises Unavailable (500) where it holds
    anything else."""
    try:
        rows = sorted(orjson.loads(answer)["data"], key=lambda row: int(row["index"]))
        places = [row["index"] for row in rows]
        found = np.stack([np.frombuffer(b64decode(row["embedding"]), "<f4") for row in rows])
    except (ValueError, LookupError, TypeError) as error:
        raise Unavailable(f"the embedding model gave what are no vectors: {error}", 500) from error
    if places != list(range(count)):
        raise Unavailable(f"the embedding model gave {len(found)} vectors for {count} texts", 500)
    if not np.isfinite(found).all():
        raise Unavailable("the embedding model gave vectors that are not of numbers", 500)
    return found.astype(np.float32)
