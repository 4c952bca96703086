"""What a key may ask and spend: exact, once for each request, and over restarts."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from serve.gateway.errors import Forbidden, KeyRateLimited, KeySpent, KeyUncounted
from serve.gateway.keys import KeyRecord
from serve.gateway.meter import LocalMeter
from serve.gateway.meter_host import HELD_SECONDS
from serve.gateway.meter_journal import FILE, Began, Ended, MeterJournal
from tests.serve.slice_world import full_disk

D = Decimal


class Now:
    """A clock that is set by hand."""

    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


def key(**limits: object) -> KeyRecord:
    return KeyRecord.model_validate({"name": "web", "tenant": "w", "sha256": "0" * 64, **limits})


def spent(meter: LocalMeter) -> Decimal:
    """By requests of TEN that are over."""
    host = meter._host
    account = host._account(TEN)
    assert account is not None
    return host._purse(account).spent


TEN = key(max_spend=10)
NOVEMBER = datetime(2026, 11, 30, 23, 0, tzinfo=UTC).timestamp()


@pytest.fixture
def clock() -> Now:
    return Now()


@pytest.fixture
def wall() -> Now:
    return Now(NOVEMBER)


@pytest.fixture
async def meter(tmp_path: Path, clock: Now, wall: Now) -> AsyncIterator[LocalMeter]:
    meter = LocalMeter(tmp_path, clock, wall)
    yield meter
    await meter.aclose()


async def test_a_key_without_limits_is_not_counted(meter: LocalMeter, tmp_path: Path) -> None:
    for n in range(100):
        await meter.begin(key(), str(n), 10**9, None)
        await meter.end(key(), str(n), 1, None)
    assert not (tmp_path / FILE).exists()


async def test_too_many_requests_are_refused_at_once_with_the_time_to_wait(
    meter: LocalMeter, clock: Now
) -> None:
    web = key(rpm=2)
    await meter.begin(web, "a", 1, None)
    await meter.begin(web, "b", 1, None)
    with pytest.raises(KeyRateLimited, match="2 requests per minute") as refused:
        await meter.begin(web, "c", 1, None)
    assert refused.value.headers() == {"retry-after": "30"}
    # Refused ones count for nothing.
    clock.at += 30
    await meter.begin(web, "d", 1, None)
    # Another key has its own.
    await meter.begin(key(name="other", rpm=2), "e", 1, None)


async def test_tokens_are_settled_with_what_was_used(meter: LocalMeter) -> None:
    web = key(tpm=1_500_000)
    await meter.begin(web, "a", 1_500_000, None)
    with pytest.raises(KeyRateLimited, match="1,500,000 tokens per minute"):
        await meter.begin(web, "b", 500, None)
    await meter.end(web, "a", 100, None)
    await meter.begin(web, "c", 1_499_900, None)


async def test_money_is_held_at_worst_and_settled_exactly(meter: LocalMeter, wall: Now) -> None:
    await meter.begin(TEN, "a", 1, D(6))
    with pytest.raises(KeyRateLimited, match="held by its requests") as held:
        await meter.begin(TEN, "b", 1, D(5))
    assert held.value.code == "key_money_held"
    await meter.end(TEN, "a", 1, D("0.000000000001"))
    assert spent(meter) == D("0.000000000001")
    await meter.begin(TEN, "b", 1, D("9.999999999999"))
    await meter.end(TEN, "b", None, None)
    assert spent(meter) == D(10)
    with pytest.raises(KeySpent, match="0 of it is left") as refused:
        await meter.begin(TEN, "c", 1, D("0.01"))
    assert refused.value.headers() == {"retry-after": "3600"}
    wall.at += 3_600
    await meter.begin(TEN, "c", 1, D(10))


async def test_a_ticket_counts_once(meter: LocalMeter) -> None:
    for _ in range(3):
        await meter.begin(TEN, "a", 1, D(4))
    await meter.begin(TEN, "b", 1, D(6))
    for _ in range(3):
        await meter.end(TEN, "a", 1, D(1))
    await meter.end(TEN, "never begun", 1, D(1))
    assert spent(meter) == D(1)


async def test_what_has_no_known_price_may_not_be_asked_with_limited_money(
    meter: LocalMeter,
) -> None:
    with pytest.raises(Forbidden) as refused:
        await meter.begin(TEN, "a", 1, None)
    assert refused.value.code == "price_unknown"


@pytest.mark.parametrize("repeated", [True, False])
async def test_a_restart_counts_what_was_granted_and_goes_on_with_what_is_in_flight(
    tmp_path: Path, clock: Now, wall: Now, repeated: bool
) -> None:
    first = LocalMeter(tmp_path, clock, wall)
    await first.begin(TEN, "ended", 1, D(2))
    await first.end(TEN, "ended", 1, D(1))
    await first.begin(TEN, "in flight", 1, D(3))
    await first.begin(TEN, "lost", 1, D(4))
    # As a process that is killed leaves it: the journal is let go, nothing more is written.
    journal = first._host._journal
    assert journal is not None
    journal.close()
    first._host._journal = None

    second = LocalMeter(tmp_path, clock, wall)
    if repeated:
        await second.begin(TEN, "in flight", 1, D(3))  # it is held already
    await second.end(TEN, "in flight", 1, D("0.5"))
    assert spent(second) == D("1.5")
    with pytest.raises(KeyRateLimited):
        await second.begin(TEN, "more", 1, D("4.51"))
    clock.at += HELD_SECONDS
    await second.begin(TEN, "fits", 1, D("4.5"))
    await second.end(TEN, "fits", 1, D(0))
    assert spent(second) == D("5.5"), "the lost one counts in full"
    await second.aclose()


async def test_an_orderly_end_keeps_the_last_cent(tmp_path: Path, clock: Now, wall: Now) -> None:
    first = LocalMeter(tmp_path, clock, wall)
    await first.begin(TEN, "a", 1, D(9))
    await first.end(TEN, "a", 1, D("0.25"))
    await first.aclose()
    second = LocalMeter(tmp_path, clock, wall)
    assert spent(second) == D("0.25")
    await second.aclose()


async def test_what_ended_is_written_down_though_nothing_begins_any_more(
    meter: LocalMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    await meter.begin(TEN, "a", 1, D(9))
    written = asyncio.Event()
    write = MeterJournal.write

    def told(journal: MeterJournal, changes: list[Began | Ended]) -> None:
        write(journal, changes)
        written.set()

    monkeypatch.setattr(MeterJournal, "write", told)
    await meter.end(TEN, "a", 1, D("0.25"))
    async with asyncio.timeout(60):
        await written.wait()


async def test_one_that_is_given_up_while_it_is_written_down_counts_for_nothing(
    meter: LocalMeter,
) -> None:
    web = key(max_spend=10, rpm=1)
    task = asyncio.create_task(meter.begin(web, "a", 1, D(10)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await meter.begin(web, "b", 1, D(10))


async def test_many_that_begin_together_share_one_transaction(
    meter: LocalMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    write = MeterJournal.write

    def counted(journal: MeterJournal, changes: list[Began | Ended]) -> None:
        written.append(len(changes))
        write(journal, changes)

    monkeypatch.setattr(MeterJournal, "write", counted)
    began = await asyncio.gather(
        *(meter.begin(TEN, str(n), 1, D(1)) for n in range(50)), return_exceptions=True
    )
    assert written == [10]
    assert sum(one is None for one in began) == 10


async def test_nothing_is_granted_that_cannot_be_written_down(meter: LocalMeter) -> None:
    await meter.begin(TEN, "a", 1, D(1))

    with full_disk() as given:
        for n in range(50):
            with pytest.raises(KeyUncounted) as refused:
                await meter.begin(TEN, f"b{n}", 1, D(5))
        assert "disk" not in refused.value.message
        await meter.end(TEN, "a", 1, D(1))
    assert max(given) <= 3, "what cannot be written takes no more and more"
    await meter.begin(TEN, "c", 1, D(9))
    await meter.end(TEN, "c", 1, D(9))
    await meter.aclose()
    assert spent(meter) == D(10)


async def test_two_gateways_do_not_count_in_one_folder(
    meter: LocalMeter, tmp_path: Path, clock: Now, wall: Now, caplog: pytest.LogCaptureFixture
) -> None:
    await meter.begin(TEN, "a", 1, D(1))
    second = LocalMeter(tmp_path, clock, wall)
    for _ in range(2):
        with pytest.raises(KeyUncounted):
            await second.begin(TEN, "b", 1, D(1))
    assert caplog.text.count("in use by another gateway") == 1, "said once in five seconds"
    await meter.aclose()
    clock.at += 5
    await second.begin(TEN, "b", 1, D(1))
    await second.aclose()


async def test_an_amount_that_is_none_lets_no_limited_money_out(
    tmp_path: Path, clock: Now, wall: Now
) -> None:
    first = LocalMeter(tmp_path, clock, wall)
    await first.begin(TEN, "a", 1, D(1))
    await first.end(TEN, "a", 1, D(1))
    await first.aclose()
    with closing(sqlite3.connect(tmp_path / FILE)) as changed, changed:
        changed.execute("UPDATE spent SET amount = 'NaN'")
    second = LocalMeter(tmp_path, clock, wall)
    with pytest.raises(KeyUncounted):
        await second.begin(TEN, "b", 1, D(1))


async def test_a_damaged_journal_lets_no_limited_money_out(
    tmp_path: Path, clock: Now, wall: Now, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE).write_bytes(b"no database" * 1_000)
    meter = LocalMeter(tmp_path, clock, wall)
    with pytest.raises(KeyUncounted):
        await meter.begin(TEN, "a", 1, D(1))
    assert FILE in caplog.text
    await meter.begin(key(rpm=1), "b", 1, None)
