"""How the gateway ends, without a cluster."""

from __future__ import annotations

import itertools

import pytest

from job.commands.serve_cluster import wait_until_gone
from job.errors import JobError


def test_what_takes_longer_than_rays_minute_is_waited_for() -> None:
    now = itertools.count(step=20)
    left = iter([False, False, False, False, True])
    wait_until_gone(lambda: next(left), 165, lambda: next(now), lambda _: None)
    assert next(now) > 60
    assert next(left, None) is None


def test_what_never_ends_is_told() -> None:
    now = itertools.count(step=20)
    with pytest.raises(JobError, match="within 165 s"):
        wait_until_gone(lambda: False, 165, lambda: next(now), lambda _: None)
