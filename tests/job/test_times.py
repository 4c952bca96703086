"""Times in every notation logs use."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.times import leading, parse, starts_record

SHANGHAI = ZoneInfo("Asia/Shanghai")
REFERENCE = date(2024, 3, 6)
HALF_PAST_TWO = datetime(2024, 3, 5, 6, 30, tzinfo=UTC)
"""14:30 on 5 March 2024 in Shanghai."""


@pytest.mark.parametrize(
    "value",
    [
        "2024-03-05T14:30:00",
        "2024-03-05 14:30",
        "2024-03-05T06:30:00Z",
        "2024-03-05T14:30:00.000+08:00",
        "2024-03-05T14:30:00+0800",
        "2024-03-05T14:30:00.000+08:00[Asia/Shanghai]",
        "2024-03-05 06:30:00 UTC",
        "2024-03-04 22:30:00 PST",
        "2024/03/05 14:30:00",
        "2024.3.5 14:30:00",
        "3/5/2024 14:30",
        "3/5/2024 2:30 PM",
        "20240305-14:30:0:0",
        "20240305143000",
        20240305143000,
        "20240305T063000Z",
        "Mar  5 14:30:00",
        "Tue Mar  5 14:30:00 2024",
        "Tue Mar 05 14:30:00 CST 2024",
        "Mar 5, 2024 2:30:00 PM",
        "05/Mar/2024:14:30:00 +0800",
        "05-Mar-2024 14:30:00",
        "Tue, 05 Mar 2024 14:30:00 +0800",
        "Tue, 05 Mar 2024 06:30:00 GMT",
        "Tue Mar 05 2024 14:30:00 GMT+0800 (China Standard Time)",
        "2024年3月5日 14时30分",
        "2024年3月5日 14时30分00秒",
        "2024年3月5日 星期二 14:30",
        "2024年3月5日下午2:30",
        "2024/3/5 下午 2:30:00",
        "２０２４年３月５日 １４：３０",
        "3月5日 14:30",
        1709620200,
        1709620200.0,
        1709620200000,
        1709620200000000,
        1709620200000000000,
        "1709620200",
        "1709620200000",
        "[2024-03-05 14:30:00]",
    ],
)
def test_notations_of_one_moment(value: object) -> None:
    assert parse(value, REFERENCE, SHANGHAI) == HALF_PAST_TWO


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        ("2015-10-18 18:01:47,978", 978_000),
        ("2015-10-18 18:01:47.978123", 978_123),
        ("2015-10-18T18:01:47.978123456Z", 978_123),
        ("20171223-22:15:29:606", 606_000),
        ("20171223-22:15:29:6", 6_000),
        (1709620200.25, 250_000),
        ("1709620200.25", 250_000),
        ("1709620200123", 123_000),
        (1709620200123456789, 123_456),
    ],
)
def test_fractions_of_a_second(value: object, micros: int) -> None:
    found = parse(value, REFERENCE, SHANGHAI)
    assert found is not None
    assert found.microsecond == micros


@pytest.mark.parametrize(
    "value",
    [
        None, True, "", "abc", "yesterday", 0, 1, -1709620200, 42.5, "12345", "3348917502",
        3348917502, "12345678901234567890", 10**400, float("nan"), float("inf"), "2024-13-05",
        "2024-02-30", "2024-03-05 25:00:00", "1.2.3", "127.0.0.1", [], {}, "Feb 30 01:00:00",
        "0000-00-00 00:00:00",
    ],
)  # fmt: skip
def test_what_is_no_time(value: object) -> None:
    assert parse(value, REFERENCE, SHANGHAI) is None


def test_a_day_alone_is_its_first_moment_in_the_zone() -> None:
    midnight = datetime(2014, 10, 8, tzinfo=SHANGHAI)
    for value in ("2014/10/08", "2014-10-8", "20141008", "2014年10月8日", "08/Oct/2014"):
        assert parse(value, REFERENCE, SHANGHAI) == midnight


@pytest.mark.parametrize(
    ("reference", "year"),
    [
        (date(2024, 12, 31), 2024),
        (date(2025, 1, 1), 2024),
        (date(2024, 12, 30), 2024),
        (date(2024, 12, 29), 2023),
    ],
)
def test_a_year_is_filled_in_across_new_year(reference: date, year: int) -> None:
    found = parse("Dec 31 23:59:58", reference, UTC)
    assert found == datetime(year, 12, 31, 23, 59, 58, tzinfo=UTC)


def test_the_first_of_january_seen_on_new_years_eve_is_tomorrow() -> None:
    found = parse("Jan  1 00:00:03", date(2024, 12, 31), UTC)
    assert found == datetime(2025, 1, 1, 0, 0, 3, tzinfo=UTC)


def test_a_leap_day_without_a_year() -> None:
    assert parse("Feb 29 01:00:00", date(2026, 5, 1), UTC) == datetime(2024, 2, 29, 1, tzinfo=UTC)


def test_a_leap_second_is_the_next_minute() -> None:
    found = parse("2016-12-31 23:59:60", REFERENCE, UTC)
    assert found == datetime(2017, 1, 1, tzinfo=UTC)


def test_the_names_own_zone_comes_before_a_namesake() -> None:
    moment = parse("2024-03-05 14:30:00 CST", REFERENCE, SHANGHAI)
    abroad = parse("2024-03-05 14:30:00 CST", REFERENCE, UTC)
    assert moment == HALF_PAST_TWO
    assert abroad == HALF_PAST_TWO + timedelta(hours=14)


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("2015-10-18 18:01:47,978 INFO [main] x", " INFO [main] x"),
        ("2012-07-02 10:22:40,672:DEBUG:foo", ":DEBUG:foo"),
        ("2015-03-12T23:16:52.071:INFO:com", ":INFO:com"),
        ("2024-03-05 12:00:00 -0500 foo", " foo"),
        ("2024-03-05 12:00:00 - INFO", " - INFO"),
        ("2024-03-05T14:30Z started", " started"),
        ("[2024-03-05 12:00:00] started", " started"),
        ("[2024-03-05 12:00:00 WARN] slow", " WARN] slow"),
        ("(2024-03-05 12:00:00) started", " started"),
        ("\x1b[0m\x1b[32m2024-03-05 12:00:00 ok", " ok"),
        ("<34>1 2003-10-11T22:14:15.003Z host app", " host app"),
        ("<34>Oct 11 22:14:15 host su: failed", " host su: failed"),
        ("Sep 19 09:24:04 Tims-MacBook-Air x", " Tims-MacBook-Air x"),
        ("[Sun Dec 04 04:47:44 2005] [notice] x", " [notice] x"),
        ("20171223-22:15:29:606|Step_LSC|30002312|x", "|Step_LSC|30002312|x"),
        ("10/Oct/2000:13:55:36 -0700 GET /", " GET /"),
        ("05-Mar-2024 14:30:00.123 INFO", " INFO"),
        ("Jul 05, 2024 3:04:05 PM com.foo.Bar run", " com.foo.Bar run"),
        ("17/06/09 20:10:40 INFO executor", " INFO executor"),
        ("081109 203615 148 INFO dfs", " 148 INFO dfs"),
        ("03-17 16:13:38.811  1702  2395 D x", "  1702  2395 D x"),
        ("2016-09-28 04:30:30, Info  CBS", ", Info  CBS"),
        ("1066036250.603    310 192.168.0.1", "    310 192.168.0.1"),
        ("12:30:00 started", " started"),
        ("2024年3月5日 14时30分 启动失败", " 启动失败"),
    ],
)
def test_a_line_that_opens_with_a_time(line: str, rest: str) -> None:
    found = leading(line, REFERENCE, UTC)
    assert found is not None
    assert line[found[1] :] == rest
    assert found[0].tzinfo is UTC
    assert starts_record(line)


@pytest.mark.parametrize(
    "line",
    [
        "", "hello", "INFO started", "  2024-03-05 12:00:00 indented", "3348917502 orders",
        "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700]", "12345 files", "1.2.3 released",
        "\tat com.foo.Bar(Bar.java:42)", "2024-03-05 was a Tuesday", "00:1b:44:11:3a:b7 is up",
        "Marathon 12 results", "{}", "\x1b[0m",
    ],
)  # fmt: skip
def test_a_line_that_opens_with_something_else(line: str) -> None:
    assert leading(line, REFERENCE, UTC) is None
    assert not starts_record(line)


def test_a_clock_without_a_day_is_of_the_reference_date() -> None:
    found = leading("18:01:47,978 INFO x", REFERENCE, UTC)
    assert found == (datetime(2024, 3, 6, 18, 1, 47, 978_000, tzinfo=UTC), 12)


@given(st.datetimes(datetime(1990, 1, 2), datetime(2030, 1, 1)))
def test_what_is_written_is_read_back(moment: datetime) -> None:
    aware = moment.replace(tzinfo=UTC)
    millis = aware.replace(microsecond=moment.microsecond // 1000 * 1000)
    assert parse(aware.isoformat(), REFERENCE, SHANGHAI) == aware
    assert parse(int(millis.timestamp() * 1000 + 0.5), REFERENCE, SHANGHAI) == millis
    line = f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d} INFO x"
    assert leading(line, REFERENCE, UTC) == (millis, 23)


@given(st.one_of(st.text(), st.text("0123456789-:/. TZ+年月日[]<>", max_size=30)))
def test_any_text_is_a_time_or_none(text: str) -> None:
    found = parse(text, REFERENCE, SHANGHAI)
    assert found is None or found.tzinfo is UTC
    opened = leading(text, REFERENCE, SHANGHAI)
    if opened:
        assert starts_record(text)
        assert 0 < opened[1] <= len(text)
