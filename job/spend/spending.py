"""What a run may spend and has spent: settings -> purse, journal -> the money of the ledger.

Invariant: nothing is capped that has no price; the sums by kind, source and label equal the cost.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any

from job.config import Settings
from job.errors import UsageError
from job.planning import RunPlan
from job.run_folder import RunFolder
from job.spend.money import FINEST
from job.spend.prices import known_prices
from serve.ask.price_table import AS_OF
from serve.ask.spend import round_exactly
from serve.ask.spend_account import Account, reckon
from serve.ask.spend_host import Purse
from serve.ask.spend_journal import FILE, SpendJournal

NO_LABEL = "(none)"
"""Instead of the team of an input that has none."""


def journal_path(settings: Settings) -> Path:
    """Where the account of spend is kept: beside the answers."""
    return settings.answers.with_name(FILE)


def make_purse(settings: Settings, folder: RunFolder) -> Purse:
    """What this start of the run in `folder` may spend. Raises UsageError where a cap is to hold
    and what was spent before is written down elsewhere."""
    if settings.provider is None:
        return Purse("", "", None, {})
    journal = str(journal_path(settings))
    run, kept_in = folder.spender(journal)
    if settings.max_spend is not None and kept_in != journal:
        raise UsageError(
            f"--max-spend: what this run has spent is written down in {kept_in}, not in {journal}. "
            "Name the --answers of its first command, or begin anew with --fresh"
        )
    known = known_prices(settings.provider, settings.tiers)
    by_model = {model: one.prices for model, one in known.items()}
    return Purse(run, uuid.uuid4().hex, settings.max_spend, by_model)


def check_journal(settings: Settings) -> None:
    """Raises UsageError where no account of spend can be kept."""
    if settings.provider is None:
        return
    path = journal_path(settings)
    try:
        SpendJournal(path).close()
    except (sqlite3.Error, OSError) as error:
        raise UsageError(
            f"the account of what is spent cannot be kept in {path}: {error}. Move the file away "
            "or name another place with --answers"
        ) from error


def money_of(settings: Settings, plan: RunPlan, purse: Purse) -> dict[str, Any]:
    """What the run has cost so far, all its commands together, for the ledger."""
    if settings.provider is None:
        account = Account(total=Decimal(0))
    else:
        with SpendJournal(journal_path(settings)) as journal:
            account = reckon(journal.rows(purse.run), purse.prices, purse.command)
    known = known_prices(settings.provider, settings.tiers) if settings.provider else {}
    origins = {one.origin for one in known.values()}
    labels = {file.source: settings.inputs[file.input].label for file in plan.files}
    listed = "list" in origins
    return amounts_of(account, purse.currency, labels) | {
        "max_spend": None if purse.cap is None else float(purse.cap),
        "prices": None if not known else "list" if listed else "configuration",
        "prices_as_of": AS_OF.isoformat() if listed else None,
    }


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
