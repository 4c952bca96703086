"""What a run may spend and has spent, from its settings to its ledger."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.config import Settings, resolve
from job.errors import UsageError
from job.flags import Flags
from job.planning import RunPlan
from job.run_folder import RunFolder
from job.spend.prices import cap_warnings
from job.spend.spending import (
    account_warnings,
    amounts_of,
    check_journal,
    journal_path,
    make_purse,
    money_of,
)
from job.storage.place import Place
from serve.ask.contract import Usage
from serve.ask.settings import Prices
from serve.ask.spend import Call, Ended
from serve.ask.spend_account import Row, reckon
from serve.ask.spend_host import Purse
from serve.ask.spend_journal import SpendJournal

PRICES = {"large": Prices(currency="CNY", input=Decimal(2), output=Decimal("3.1"))}
CONFIG = """\
providers:
  priced:
    base_url: https://llm.example/v1
    models: [large, small]
    prices: {{currency: CNY, input: 2.0, cached: 0.2, output: 3.1}}
  free:
    base_url: https://llm.example/v1
    models: [large]
  partly:
    base_url: https://llm.example/v1
    models: [large, small]
    prices: {{large: {{input: 1, output: 2}}}}
run: {{provider: {provider}}}
inputs:
  - {{path: a.log, label: shop}}
  - {{path: b.log}}
"""


def _settings(folder: Path, provider: str = "priced", **flags: Any) -> Settings:
    config = folder / "fupan.yaml"
    config.write_text(CONFIG.format(provider=provider))
    answers = flags.pop("answers", str(folder / "answers.db"))
    return resolve(Flags(config=str(config), answers=answers, **flags))


def _plan() -> RunPlan:
    files = [SimpleNamespace(source=f"{name}.log", input=n) for n, name in enumerate("ab")]
    return cast(RunPlan, SimpleNamespace(files=files))


def test_a_cap_needs_a_price_for_every_model(tmp_path: Path) -> None:
    assert _settings(tmp_path, max_spend=2.5).max_spend == Decimal("2.5")
    with pytest.raises(UsageError, match=r"large costs at https://llm.example/v1 .* prices: \{"):
        _settings(tmp_path, "free", max_spend=2.5)
    with pytest.raises(UsageError, match="what small costs"):
        _settings(tmp_path, "partly", model="large,small", max_spend=2.5)
    assert _settings(tmp_path, "free").max_spend is None


def test_a_plan_warns_of_a_cap_that_will_stop_the_run() -> None:
    assert cap_warnings(None, 9.0) == cap_warnings(Decimal(1), None) == []
    assert cap_warnings(Decimal("2.5"), 2.5) == []
    (said,) = cap_warnings(Decimal("2.5"), 2.6)
    assert "more than the 2.5 of --max-spend" in said


@pytest.mark.parametrize("amount", [0.0, -1.0, float("nan"), float("inf")])
def test_a_cap_is_an_amount_above_nothing(tmp_path: Path, amount: float) -> None:
    with pytest.raises(UsageError, match="--max-spend"):
        _settings(tmp_path, max_spend=amount)


def test_all_commands_of_a_run_share_a_purse_and_its_journal(tmp_path: Path) -> None:
    folder = RunFolder(Place.of(tmp_path / "out"))
    settings = _settings(tmp_path, max_spend=2.5)
    first, second = make_purse(settings, folder), make_purse(settings, folder)
    assert (first.run, first.cap, first.currency) == (second.run, Decimal("2.5"), "CNY")
    assert first.command != second.command
    moved = str(tmp_path / "elsewhere" / "answers.db")
    assert make_purse(_settings(tmp_path, answers=moved), folder).run == first.run
    _attempt(settings, make_purse(settings, folder))
    for cap in (None, 2.5):
        with pytest.raises(UsageError, match=r"written down in .*another --out"):
            make_purse(_settings(tmp_path, answers=moved, max_spend=cap), folder)


def _attempt(settings: Settings, purse: Purse, attempts: int = 1) -> None:
    """Each may have cost 1 CNY."""
    call = Call("large", 10, 10, 60.0, {("operation", "a.log"): 1.0})
    rows = [
        Row(f"{number}", purse.command, call, "CNY", Decimal(1), None, None, None, 0.0)
        for number in range(attempts)
    ]
    with SpendJournal(journal_path(settings)) as journal:
        journal.begin(purse.run, rows)


def test_what_a_run_has_spent_is_not_forgotten_with_its_account(tmp_path: Path) -> None:
    folder = RunFolder(Place.of(tmp_path / "out"))
    settings, capped = _settings(tmp_path), _settings(tmp_path, max_spend=2.5)
    _attempt(settings, make_purse(capped, folder))
    kept = journal_path(settings).read_bytes()
    for file in tmp_path.glob("spend.db*"):
        file.unlink()
    with pytest.raises(UsageError, match=r"what earlier commands .* Put the file back"):
        make_purse(capped, folder)
    journal_path(settings).write_bytes(kept)
    assert make_purse(capped, folder).cap == Decimal("2.5")
    journal_path(settings).unlink()
    # Without a cap it goes on and says so, and no later command may set one.
    purse = make_purse(settings, folder)
    (said,) = account_warnings(settings, folder, purse)
    assert "the cost lacks what earlier commands spent" in said
    with pytest.raises(UsageError, match="--max-spend: what earlier commands"):
        make_purse(capped, folder)


def test_a_damaged_account_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    settings, folder = _settings(tmp_path), RunFolder(Place.of(tmp_path / "out"))
    purse = make_purse(settings, folder)
    _attempt(settings, purse, 500)
    path = journal_path(settings)
    data = bytearray(path.read_bytes())
    data[8192:] = b"A" * (len(data) - 8192)
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"cannot be kept in .*spend\.db.* move the file away"):
        check_journal(settings)


def test_an_account_that_is_damaged_during_a_run_costs_no_report(tmp_path: Path) -> None:
    settings, folder = _settings(tmp_path), RunFolder(Place.of(tmp_path / "out"))
    purse = make_purse(settings, folder)
    _attempt(settings, purse)
    assert account_warnings(settings, folder, purse) == []
    path = journal_path(settings)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE attempts SET sources = 'A'")
    connection.close()
    for _ in range(2):
        assert money_of(settings, _plan(), purse)["cost"] is None
        (said,) = account_warnings(settings, folder, purse)
        assert "what the run has cost is not known" in said
        path.write_bytes(b"A" * 8192)


def test_a_file_that_is_no_journal_is_told(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    journal_path(settings).write_bytes(b"not a database at all, but long enough to look at")
    with pytest.raises(UsageError, match=r"spend\.db.* move the file away"):
        check_journal(settings)


_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["answered", "free", "unconfirmed", None]),
        st.integers(1, 9000),
        st.integers(0, 4000),
        st.dictionaries(
            st.sampled_from(
                [("operation", "a.log"), ("operation", "b.log"), ("feedback", "b.log")]
            ),
            st.floats(0, 5000),
            min_size=1,
        )
        | st.just({("naming", ""): 1.0}),
        st.booleans(),
    ),
    max_size=12,
)


@given(_ROWS)
def test_every_breakdown_equals_the_cost(
    rows: list[tuple[Ended | None, int, int, dict[tuple[str, str], float], bool]],
) -> None:
    held, exact = [], Decimal(0)
    for number, (ended, tokens, output, billed_to, earlier) in enumerate(rows):
        call = Call("large", tokens, output, 60.0, billed_to)
        usage = Usage(tokens, output, tokens // 2) if ended == "answered" else None
        cost = (tokens - tokens // 2) * Decimal("2.0") + tokens // 2 * Decimal("0.2")
        cost = (cost + output * Decimal("3.1")) / 1_000_000
        reserved = (2 * tokens * Decimal("2.0") + output * Decimal("3.1")) / 1_000_000
        command = "earlier" if earlier else "now"
        row = Row(str(number), command, call, "CNY", reserved, cost, usage, ended, 0.0)
        held.append(row)
        exact += {"answered": cost, "free": Decimal(0)}.get(str(ended), reserved)
    money = amounts_of(reckon(held, PRICES, "now"), "CNY", {"a.log": "shop", "b.log": None})
    total = Decimal(str(money["cost"]))
    assert 0 <= total - exact < Decimal("0.000001")
    for by in ("by_kind", "by_source", "by_label"):
        assert sum(Decimal(str(part)) for part in money[by].values()) == total
    assert set(money["by_label"]) <= {"shop", "(none)", "(naming)"}
    assert set(money["by_source"]) <= {"a.log", "b.log", "(naming)"}
    assert money["usd"] is None
    assert 0 <= money["unconfirmed"] <= money["cost"]
    assert 0 <= money["cost_before"] <= money["cost"]


def test_the_money_of_a_run_is_read_from_its_journal(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    purse = make_purse(settings, RunFolder(Place.of(tmp_path / "out")))
    call = Call("large", 10, 10, 60.0, {("operation", "a.log"): 1.0})
    with SpendJournal(journal_path(settings)) as journal:
        for ticket, run in (("1", purse.run), ("2", "another")):
            row = Row(ticket, purse.command, call, "CNY", Decimal(1), None, None, None, 0.0)
            journal.begin(run, [row])
    money = money_of(settings, _plan(), purse)
    assert (money["cost"], money["unconfirmed"], money["currency"]) == (1.0, 1.0, "CNY")
    assert money["by_label"] == {"shop": 1.0}
    assert (money["prices"], money["max_spend"]) == ("configuration", None)


def test_without_prices_the_cost_is_not_known(tmp_path: Path) -> None:
    settings = _settings(tmp_path, "free")
    purse = make_purse(settings, RunFolder(Place.of(tmp_path / "out")))
    with SpendJournal(journal_path(settings)) as journal:
        call = Call("large", 10, 10, 60.0, {("operation", "a.log"): 1.0})
        row = Row("1", purse.command, call, None, None, None, None, None, 0.0)
        journal.begin(purse.run, [row])
    money = money_of(settings, _plan(), purse)
    names = ("usd", "cost", "currency", "unconfirmed", "prices")
    assert [money[name] for name in names] == [None] * len(names)
