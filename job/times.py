"""Every notation of a time that logs use -> an aware datetime in UTC.

Invariant: a time that is returned was written in the data; what the notation leaves open is filled
in by two given values only, the reference date (a missing year, a missing day) and the zone (a
time without an offset). A number outside 1990 to ten years after the reference is an identifier,
not a time. Fractions finer than a microsecond are cut, as the columns hold microseconds.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OLDEST_EPOCH = 631_152_000
"""1990-01-01 as epoch seconds: smaller numbers are counters and durations."""
_LATEST_YEARS = 10
_TICKS = (1, 10**3, 10**6, 10**9)
"""Per second: epoch numbers in s, ms, us and ns; their plausible ranges do not overlap."""

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_ZONE_HOURS: dict[str, float] = {
    "Z": 0, "UTC": 0, "GMT": 0, "WET": 0, "BST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3,
    "MSK": 3, "IST": 5.5, "HKT": 8, "SGT": 8, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11,
    "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
}  # fmt: skip
"""Hours east of UTC. CST, IST and BST have several meanings: the given zone's own name comes
first, then the meaning of RFC 2822 or the most common one."""
_AFTERNOON = {"pm", "下午", "晚上", "傍晚"}
_MORNING = {"am", "上午", "凌晨", "早上"}

_MONTH = r"(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s+)?"
_HALF = r"(?P<half>[AaPp]\.?[Mm]\.?|上午|下午|晚上|傍晚|凌晨|早上|中午)"
_CLOCK = (
    rf"(?:{_HALF.replace('half', 'before')}\s?)?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})"
    r"(?::(?P<second>\d{1,2})(?:(?P<point>[.,:])(?P<fraction>\d{1,9})\d*)?)?(?!\d)"
    rf"(?:\s?{_HALF}(?![A-Za-z]))?"
)
_OFFSET = r"[+-](?:0\d|1[0-4]):?[0-5]\d"
_ZONE_NAMES = "|".join(_ZONE_HOURS)
_ZONE = (
    rf"(?:\s?(?P<zone>(?:UTC|GMT)?{_OFFSET}|{_ZONE_NAMES})(?![A-Za-z0-9])"
    r"|(?P<hours>[+-](?:0\d|1[0-4]))(?![\d:]))?"
)
_NUMERIC = r"(?P<year>\d{4})(?P<sep>[-/.])(?P<month>\d{1,2})(?P=sep)(?P<day>\d{1,2})"
_CHINESE_CLOCK = (
    rf"(?:{_HALF}\s?)?(?P<hour>\d{{1,2}})[:时点]"
    r"(?:(?P<minute>\d{1,2})[:分]?(?:(?P<second>\d{1,2})秒?)?)?"
)


def _compiled(*sources: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(source, re.ASCII) for source in sources)


_AT_DIGIT = _compiled(
    rf"{_NUMERIC}(?:[T_,-]|,?\s+){_CLOCK}{_ZONE}",
    rf"(?P<year>\d{{4}})(?P<month>\d\d)(?P<day>\d\d)[-T_ ]{_CLOCK}{_ZONE}",
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)[-T_ ]?(?P<hour>\d\d)(?P<minute>\d\d)"
    rf"(?:(?P<second>\d\d)(?:[.,]?(?P<fraction>\d{{1,9}}))?)?(?!\d){_ZONE}",
    rf"(?P<day>\d{{1,2}})[ /-]{_MONTH}[ /-](?P<year>\d{{4}})[: T]{_CLOCK}{_ZONE}",
    rf"(?P<first>\d{{1,2}})/(?P<other>\d{{1,2}})/(?P<year>\d{{4}}),?\s+{_CLOCK}{_ZONE}",
    rf"(?P<year>\d\d)/(?P<month>\d\d)/(?P<day>\d\d) {_CLOCK}{_ZONE}",
    rf"(?P<month>\d\d)[-/](?P<day>\d\d)\s+{_CLOCK}{_ZONE}",
    r"(?P<year>\d\d)(?P<month>\d\d)(?P<day>\d\d) (?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)"
    r"(?!\S)",
    rf"(?:(?P<year>\d{{4}})年)?(?P<month>\d{{1,2}})月(?P<day>\d{{1,2}})[日号]"
    rf"\s*(?:(?:星期|周)\S)?\s*{_CHINESE_CLOCK}",
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)"
    r"(?:(?P<point>[.,])(?P<fraction>\d{1,9})\d*)?(?![\d:])",
)
_AT_LETTER = _compiled(
    rf"{_WEEKDAY}{_MONTH}\s+(?P<day>\d{{1,2}}),?\s+(?:(?P<year>\d{{4}}),?\s+)?{_CLOCK}{_ZONE}"
    r"(?:\s+(?P<year_after>(?:19|20)\d\d)(?!\d))?",
    rf"{_WEEKDAY}(?P<day>\d{{1,2}})[ -]{_MONTH}[ -](?P<year>\d{{4}})\s+{_CLOCK}{_ZONE}",
)
_DAY_ONLY = _compiled(
    _NUMERIC,
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)",
    r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号]?",
    rf"(?P<day>\d{{1,2}})[ /-]{_MONTH}[ /-](?P<year>\d{{4}})",
    rf"{_MONTH}\s+(?P<day>\d{{1,2}}),?\s+(?P<year>\d{{4}})",
    r"(?P<first>\d{1,2})/(?P<other>\d{1,2})/(?P<year>\d{4})",
)
_ISO = re.compile(
    rf"\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?+(?:Z|{_OFFSET})?+"
    rf"(?![\d:]|\s?(?:{_HALF.replace('?P<half>', '?:')}|{_ZONE_NAMES}|[+-]\d)(?![A-Za-z]))",
    re.ASCII,
)
"""The notation of nearly every log, read by the standard library's own parser."""
_LEAD = r"(?:\x1b\[[\d;]*m)*(?:<\d{1,3}>(?:1 )?)?[\[(]?"
_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\]?[ \t:|]+\[?"
_AFTER_LEAD = re.compile(_LEAD, re.ASCII)
_NUMBER = re.compile(r"(\d{9,19})(?:\.(\d{1,9}))?", re.ASCII)
_LEADING_NUMBER = re.compile(r"([12]\d{9}(?:\d{3}){0,3})(?:\.(\d{1,9}))?(?![\w.:-])", re.ASCII)

START = (
    rf"{_LEAD}(?:{_LEVEL})?"
    r"(?:\d{4}(?:[-/.]\d{1,2}){2}[T_, \t-][ \t]*(?:[上下晚凌早中]\S[ ]?)?\d{1,2}:\d"
    r"|(?:19|20)\d{6}(?:[-T_ ]\d\d?:?\d|\d{4}(?:\d\d)?(?!\d))"
    r"|\d{1,2}[ /-][A-Z][a-z]{2}[ /-]\d{4}[: T]\d\d?:\d"
    r"|\d{1,2}/\d{1,2}/\d{2,4},?[ ]+\d\d?:\d|\d\d[-/]\d\d[ ]+\d\d?:\d\d:\d"
    r"|\d{6}[ ]\d{6}[ ]|[IWEF]\d{4}[ ]\d\d:\d\d:\d"
    r"|(?:\d{4}年)?\d{1,2}月\d{1,2}[日号][ ]*[^\s\d]{0,6}[ ]*[^\s\d]{0,2}[ ]?\d{1,2}[:时点]"
    r"|\d{1,2}:\d\d:\d\d(?![\d:])"
    r"|[12]\d{9}(?:\d{3}){0,3}(?:\.\d{1,9})?(?![\w.:-])"
    r"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?[ ]+)?"
    r"(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*[ ]+\d{1,2},?[ ]+(?:\d{4},?[ ]+)?"
    r"|\d{1,2}[ -][A-Z][a-z]{2}[ -]\d{4}[ ]+)\d\d?:\d)"
)
"""The source of an unanchored pattern (compile it with `re.ASCII`) for the beginning of a line
that opens with a time, or with its level and a time: more than `leading` reads, and tested without
reading it."""
_START = re.compile(START, re.ASCII)


def parse(value: object, reference: date, zone: tzinfo) -> datetime | None:
    """The time a field's value stands for, aware and in UTC, or None where it is none.

    Numbers and strings of digits are epoch seconds, milliseconds, microseconds or nanoseconds.
    Text may be in any notation `leading` knows, or a day alone (its first moment in `zone`). Of
    `a/b/2024`, a is the month unless it is above 12.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 10**7 <= value < 10**19:  # the smallest is a day, 19900101
            return None
        return _from_number(
            repr(value) if isinstance(value, float) else str(value), reference, zone
        )
    if not isinstance(value, str) or not 6 <= len(value) <= 80:
        return None
    text = value if value.isascii() else unicodedata.normalize("NFKC", value)
    text = text.strip(" \t\r\n[]\"'")
    if _ISO.fullmatch(text) and (found := _from_iso(text, zone)):
        return found
    if text[:1].isdigit() and text.replace(".", "", 1).isdigit():
        return _from_number(text, reference, zone)
    text = text.partition("[")[0].partition(" (")[0].rstrip()
    for pattern in (*_AT_DIGIT, *_AT_LETTER, *_DAY_ONLY):
        match = pattern.fullmatch(text)
        if match and (found := _from_parts(match.groupdict(), reference, zone)):
            return found
    return None


def leading(line: str, reference: date, zone: tzinfo) -> tuple[datetime, int] | None:
    """The time a log line opens with, and the offset in `line` where it ends (after its closing
    bracket, if it stood alone in brackets); None where the line opens with something else.

    ANSI escapes and a syslog priority (`<34>1 `) may come before it. Times without a date are of
    the reference date.
    """
    begin = 0
    if not line[:1].isdigit() and (lead := _AFTER_LEAD.match(line)):
        begin = lead.end()
    match = _ISO.match(line, begin)
    found = _from_iso(match[0], zone) if match else None
    if found is None and _START.match(line):
        if number := _LEADING_NUMBER.match(line, begin):
            match, found = number, _from_number(number[0], reference, zone)
        if found is None:
            match, found = _first_match(line, begin, reference, zone)
    if match is None or found is None:
        return None
    end = match.end()
    if begin and line[begin - 1] + line[end : end + 1] in ("[]", "()"):
        end += 1
    return found, end


def starts_record(line: str) -> bool:
    """Whether a log line opens with a time, by its shape alone: cheaper than `leading`."""
    return _START.match(line) is not None


def _first_match(
    line: str, begin: int, reference: date, zone: tzinfo
) -> tuple[re.Match[str] | None, datetime | None]:
    patterns = _AT_DIGIT if line[begin : begin + 1].isdigit() else _AT_LETTER
    for pattern in patterns:
        match = pattern.match(line, begin)
        if match and (found := _from_parts(match.groupdict(), reference, zone)):
            return match, found
    return None, None


def _from_iso(text: str, zone: tzinfo) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _from_number(text: str, reference: date, zone: tzinfo) -> datetime | None:
    match = _NUMBER.fullmatch(text)
    if match:
        whole, fraction = int(match[1]), match[2] or ""
        latest = (reference.year + _LATEST_YEARS - 1970) * 366 * 86_400
        for ticks in _TICKS:
            if _OLDEST_EPOCH <= whole // ticks <= latest:
                micros = whole * 10**6 // ticks
                if fraction:
                    micros += int(fraction.ljust(9, "0")) // (1000 * ticks)
                return _EPOCH + timedelta(microseconds=micros)
    if text.isdigit() and text.isascii() and len(text) in (8, 12, 14, 17):
        for pattern in (_AT_DIGIT[2], _DAY_ONLY[1]):
            if calendar := pattern.fullmatch(text):
                return _from_parts(calendar.groupdict(), reference, zone)
    return None


def _from_parts(parts: dict[str, str | None], reference: date, zone: tzinfo) -> datetime | None:
    """The time of a match's named parts, or None where they make no calendar date or clock."""
    hour = _hour(int(parts.get("hour") or 0), parts.get("half") or parts.get("before"))
    minute, second = int(parts.get("minute") or 0), int(parts.get("second") or 0)
    fraction = parts.get("fraction") or "0"
    # After a colon stands a count of milliseconds, unpadded (20171223-22:15:29:6 is 6 ms).
    micros = int(fraction) * 1000 if parts.get("point") == ":" else int(fraction.ljust(6, "0")[:6])
    try:
        day = _day(parts, reference)
        offset = _offset(parts.get("zone") or parts.get("hours"))
        moment = datetime(day.year, day.month, day.day, hour, minute, min(second, 59), tzinfo=zone)
        if name := parts.get("zone"):
            if offset is not None and moment.tzname() != name:
                moment = moment.replace(tzinfo=timezone(timedelta(hours=offset)))
        elif offset is not None:
            moment = moment.replace(tzinfo=timezone(timedelta(hours=offset)))
        # A leap second is the moment after its minute's last.
        moment += timedelta(microseconds=micros, seconds=1 if second == 60 else 0)
        return moment.astimezone(UTC) if second <= 60 else None
    except (ValueError, OverflowError):
        return None


def _hour(hour: int, half: str | None) -> int:
    half = (half or "").lower().replace(".", "")
    if half in _AFTERNOON or (half == "中午" and hour < 11):
        return hour if hour >= 12 else hour + 12
    if half in _MORNING and hour == 12:
        return 0
    return hour


def _day(parts: dict[str, str | None], reference: date) -> date:
    """Raises ValueError where there is no such day."""
    year_text = parts.get("year") or parts.get("year_after")
    if first := parts.get("first"):
        month, day = int(first), int(parts["other"] or 0)
        if month > 12:
            month, day = day, month
    elif month_text := parts.get("month"):
        month = int(month_text) if month_text.isdigit() else _MONTHS[month_text.lower()]
        day = int(parts["day"] or 0)
    else:
        return reference
    if year_text:
        return date(int(year_text) + (2000 if len(year_text) == 2 else 0), month, day)
    return _latest_day(month, day, reference)


@lru_cache(maxsize=512)
def _latest_day(month: int, day: int, reference: date) -> date:
    """The last such day that is at most one day after the reference: across New Year a line of
    31 December read on 1 January belongs to the year before. Raises ValueError where there is
    none."""
    latest = reference + timedelta(days=1)
    # Nine years hold a 29 February even across 2100.
    for year in range(latest.year, latest.year - 9, -1):
        try:
            candidate = date(year, month, day)
        except ValueError:
            continue
        if candidate <= latest:
            return candidate
    raise ValueError(f"no such day: month {month}, day {day}")


def _offset(zone: str | None) -> float | None:
    """Hours east of UTC of `+08:00`, `GMT-0700`, `PDT`; None for no zone or an unknown name."""
    if not zone:
        return None
    if zone in _ZONE_HOURS:
        return _ZONE_HOURS[zone]
    digits = re.sub(r"[^\d+-]", "", zone)
    if not digits:
        return None
    sign = -1 if digits[0] == "-" else 1
    return sign * (int(digits[1:3]) + int(digits[3:5] or 0) / 60)
