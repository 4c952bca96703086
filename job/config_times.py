"""Dates, times of day and zones as a person writes them, in flags or in fupan.yaml.

Invariant: every moment that leaves this module knows its offset.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from job.errors import UsageError


def zone_of(name: str | None) -> ZoneInfo:
    """The zone called `name`, else this machine's, else UTC. Raises UsageError."""
    local = Path("/etc/localtime")
    if name is None:
        name = os.environ.get("TZ", "").lstrip(":")
        if not name and local.is_symlink():
            name = str(local.resolve()).partition("zoneinfo/")[2]
        try:
            return ZoneInfo(name or "UTC")
        except (ZoneInfoNotFoundError, ValueError):
            return ZoneInfo("UTC")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UsageError(f"unknown time zone {name!r}; use a name like Asia/Shanghai") from error


def day_at(text: str | None, zone: ZoneInfo) -> date | None:
    """A date: ISO, `today` or `yesterday` in `zone`. Raises UsageError."""
    today = datetime.now(zone).date()
    named: Mapping[str, date] = {"today": today, "yesterday": today - timedelta(days=1)}
    if text is None or text in named:
        return None if text is None else named[text]
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is no date; use YYYY-MM-DD, today or yesterday") from error


def moment_at(text: str | None, zone: ZoneInfo, reference: date, flag: str) -> datetime | None:
    """A point in time: ISO, or HH:MM on the `reference` day. Raises UsageError with `flag`."""
    if text is None:
        return None
    try:
        if len(text) <= 8 and ":" in text:
            text = f"{reference.isoformat()}T{text}"
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{flag} {text!r} is no time; use 2026-03-14T08:00 or 08:00") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def deadline_at(text: str | None, zone: ZoneInfo) -> datetime | None:
    """The next time that a clock in `zone` shows HH:MM. Raises UsageError."""
    if text is None:
        return None
    now = datetime.now(zone)
    try:
        of_day = time.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--deadline {text!r}: use a time of day, such as 07:30") from error
    if of_day.tzinfo is not None:
        raise UsageError(
            f"--deadline {text!r}: use a time of day without an offset, such as 07:30; it is one "
            f"of {zone}, or of the --timezone that you name"
        )
    at = datetime.combine(now.date(), of_day, zone)
    return at if at > now else at + timedelta(days=1)
