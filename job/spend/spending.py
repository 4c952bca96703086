"""What a run may spend and has spent: settings -> purse, journal -> the money of the ledger.

Invariant: nothing is capped that has no price; the sums by kind, source and label equal the cost.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any

from job.config import Settings
from job.planning import RunPlan
from job.run_folder import RunFolder
from job.spend.continued import damaged, go_on, is_lacking
from job.spend.money import FINEST
from job.spend.prices import known_prices
from serve.ask.price_table import AS_OF
from serve.ask.spend import round_exactly
from serve.ask.spend_account import Account, reckon
from serve.ask.spend_host import Purse
from serve.ask.spend_journal import FILE, SpendJournal

DAY = 86_400.0
_MOST_DAYS = 36_500
"""More has no float, and nothing is as old."""
NO_LABEL = "(none)"
"""Instead of the team of an input that has none."""


def journal_path(settings: Settings) -> Path:
    """Where the account of spend is kept: beside the answers."""
    return settings.answers.with_name(FILE)


def make_purse(settings: Settings, folder: RunFolder) -> Purse:
    """What this start of the run in `folder` may spend. Raises UsageError, see `go_on`."""
    if settings.provider is None:
        return Purse("", "", None, {})
    run, command = go_on(folder, journal_path(settings), settings.max_spend is not None)
    known = known_prices(settings.provider, settings.tiers)
    by_model = {model: one.prices for model, one in known.items()}
    return Purse(run, command, settings.max_spend, by_model)


def check_journal(settings: Settings) -> None:
    """See that an account of spend can be kept, and forget what is older than the user wants to
    keep. Raises UsageError where it cannot."""
    if settings.provider is None:
        return
    path, days, now = journal_path(settings), settings.privacy.keep_days, time.time()
    try:
        with SpendJournal(path) as journal:
            journal.check()
            if days is not None:
                journal.forget(now - min(days, _MOST_DAYS) * DAY, now)
    except (sqlite3.Error, OSError) as error:
        raise damaged(path, error) from error


def forget_spend(answers: Path, before: float, dry_run: bool) -> int:
    """Forget what runs spent of which nothing happened since `before` (seconds since the epoch),
    beside the store at `answers`; how many attempts, see `SpendJournal.forget`."""
    path = answers.with_name(FILE)
    if not path.is_file():
        return 0
    try:
        with SpendJournal(path) as journal:
            return journal.forget(before, time.time(), dry_run)
    except (sqlite3.Error, OSError) as error:
        raise damaged(path, error) from error


def money_of(settings: Settings, plan: RunPlan, purse: Purse) -> dict[str, Any]:
    """What the run has cost so far, all its commands together, for the ledger; not known where the
    account cannot be read."""
    account = Account(total=Decimal(0))
    if settings.provider is not None:
        account = _account(journal_path(settings), purse) or Account()
    known = known_prices(settings.provider, settings.tiers) if settings.provider else {}
    origins = {one.origin for one in known.values()}
    labels = {file.source: settings.inputs[file.input].label for file in plan.files}
    listed = "list" in origins
    return amounts_of(account, purse.currency, labels) | {
        "max_spend": None if purse.cap is None else float(purse.cap),
        "prices": None if not known else "list" if listed else "configuration",
        "prices_as_of": AS_OF.isoformat() if listed else None,
    }


def account_warnings(settings: Settings, folder: RunFolder, purse: Purse) -> list[str]:
    """What a user should know of the account of the run at its end."""
    if settings.provider is None:
        return []
    path = journal_path(settings)
    if _account(path, purse) is None:
        return [f"what the run has cost is not known: the account in {path} cannot be read"]
    if is_lacking(folder):
        return [f"the cost lacks what earlier commands spent: it is not in {path} any more"]
    return []


def _account(path: Path, purse: Purse) -> Account | None:
    """The account of the run; None where it cannot be read."""
    try:
        with SpendJournal(path) as journal:
            return reckon(journal.rows(purse.run), purse.prices, purse.command)
    except (sqlite3.Error, OSError):
        return None


def amounts_of(
    account: Account, currency: str | None, labels: Mapping[str, str | None]
) -> dict[str, Any]:
    """The account as it is written down, in millionths of `currency`. `labels` by source."""
    total = account.total
    if total is None:
        empty: dict[str, Any] = {"by_kind": {}, "by_source": {}, "by_label": {}}
        unknown = ("usd", "cost", "currency", "unconfirmed", "cost_before")
        return dict.fromkeys(unknown) | empty
    cost = _up(total)
    return {
        "usd": float(cost) if currency in ("USD", None) else None,
        "cost": float(cost),
        "currency": currency,
        "unconfirmed": float(min(cost, _up(account.unconfirmed))),
        "cost_before": float(min(cost, _up(account.before))),
        "by_kind": _summed([(what, share) for (what, _), share in account.shares.items()]),
        "by_source": _summed(
            [(source or f"({what})", share) for (what, source), share in account.shares.items()]
        ),
        "by_label": _summed(
            [
                ((labels.get(source) or NO_LABEL) if source else f"({what})", share)
                for (what, source), share in account.shares.items()
            ]
        ),
    }


def _summed(shares: Sequence[tuple[str, Decimal]]) -> dict[str, float]:
    """The largest first."""
    sums: dict[str, Decimal] = {}
    for name, share in shares:
        sums[name] = sums.get(name, Decimal(0)) + share
    rounded = round_exactly(sums, FINEST)
    order = sorted(rounded, key=lambda name: (-rounded[name], name))
    return {name: float(rounded[name]) for name in order}


def _up(amount: Decimal) -> Decimal:
    return amount.quantize(FINEST, ROUND_CEILING)
