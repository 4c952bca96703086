"""Who uses a shared limiter, and whose limits hold."""

from __future__ import annotations

from serve.ask.holders import BEAT_SECONDS, REMEMBERED_SECONDS, SILENT_SECONDS, Holders
from serve.ask.limiter import Limits


def test_what_a_dead_holder_had_open_is_given_up_once() -> None:
    holders = Holders()
    for name in ("dead", "alive"):
        assert holders.join(name, Limits(), now=0.0)
        holders.begin(name, f"{name} 1")
        holders.begin(name, f"{name} 2")
    holders.end("dead", "dead 2")
    now = 0.0
    while now < SILENT_SECONDS:
        assert holders.give_up(now) == []
        now += BEAT_SECONDS
        holders.beat("alive", now)
    assert holders.give_up(now) == ["dead 1"]
    assert holders.give_up(now) == []
    assert holders.busy
    holders.end("alive", "alive 1")
    holders.end("alive", "alive 2")
    assert not holders.busy


def test_holder_with_nothing_open_need_not_be_heard() -> None:
    holders = Holders()
    holders.join("idle", Limits(rpm=60), now=0.0)
    assert holders.give_up(SILENT_SECONDS * 2) == []
    assert not holders.join("idle", Limits(rpm=60), now=SILENT_SECONDS * 2)


def test_strictest_limits_hold_until_their_user_is_gone_for_ten_minutes() -> None:
    holders = Holders()
    assert holders.limits() is None
    holders.join("strict", Limits(rpm=60), now=0.0)
    holders.join("loose", Limits(rpm=600, max_concurrency=5), now=300.0)
    limits = holders.limits()
    assert limits
    assert (limits.rpm, limits.max_concurrency) == (60, 5)
    holders.give_up(REMEMBERED_SECONDS)
    limits = holders.limits()
    assert limits
    assert limits.rpm == 600
    assert holders.join("strict", Limits(rpm=60), now=700.0), "it is a stranger again"


def test_one_who_left_may_still_settle() -> None:
    holders = Holders()
    holders.beat("nobody", now=0.0)
    holders.end("nobody", "ticket")
    assert not holders.busy
