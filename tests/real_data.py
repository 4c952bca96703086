"""Real files nobody on this project wrote, beside the repository where they are available."""

from __future__ import annotations

from pathlib import Path

import pytest

_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def real_file(name: str) -> Path:
    """The path of one of the real files; the calling test is skipped where they are absent."""
    path = _FOLDER / name
    if not path.exists():
        pytest.skip(f"needs the real data file {name}, which is not beside this checkout")
    return path
