"""Plain-text log records, odd characters, languages, levels and ratings."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.clean.head import read_head
from job.clean.scales import level_of, rating_of
from job.text import language, normalise

DAY = date(2026, 3, 10)


@pytest.mark.parametrize(
    ("line", "level", "text"),
    [
        ("2015-10-18 18:01:47,978 INFO [main] org.a.B: Created", "info", "[main] org.a.B: Created"),
        ("2012-07-02 10:22:40,672:DEBUG:foo bar", "debug", "foo bar"),
        ("2026-03-10T01:02:03Z [ERROR] disk full", "error", "disk full"),
        (
            "[2026-03-10 01:02:03] [error] 12#0: *1 connect() failed",
            "error",
            "12#0: *1 connect() failed",
        ),
        ("2026-03-10 01:02:03 [main] WARN  c.e.App - slow", "warning", "[main] c.e.App - slow"),
        ("2026-03-10 01:02:03,004 - root - ERROR - it broke", "error", "root - it broke"),
        ("2026-03-10 01:02:03|web|WARN|slow", "warning", "web|slow"),
        ("2026-03-10 01:02:03 warning: low space", "warning", "low space"),
        ("2026-03-10 01:02:03 【错误】磁盘已满", "error", "磁盘已满"),
        ("2026-03-10 01:02:03 警告：磁盘将满", "warning", "磁盘将满"),
        ("2026-03-10 01:02:03 FATAL: out\n\tat a.b.C(1)", "critical", "out\n\tat a.b.C(1)"),
        ("2026-03-10 01:02:03 -1 returned, no ERROR here", None, "-1 returned, no ERROR here"),
        ("2026-03-10 01:02:03 Errors were found", None, "Errors were found"),
        ("2026-03-10 01:02:03 Error: connect refused", None, "Error: connect refused"),
        ("20171223-22:15:29:606|Step_LSC|30002312|on 3579", None, "Step_LSC|30002312|on 3579"),
        ("ERROR 2026-03-10 01:02:03 level first", "error", "level first"),
        (
            '10.1.1.1 - - [10/Mar/2026:01:02:03 +0000] "GET / HTTP/1.1" 200',
            None,
            '10.1.1.1 - - "GET / HTTP/1.1" 200',
        ),
    ],
)
def test_time_and_level_leave_the_text(line: str, level: str | None, text: str) -> None:
    head = read_head(line, DAY, UTC)
    assert head.time is not None
    assert (head.level, head.text) == (level, text)


@pytest.mark.parametrize(
    ("line", "level", "text"),
    [
        ("ERROR:root:it broke", "error", "root:it broke"),
        ("[warn] slow", "warning", "slow"),
        ("panic: foo bar failed", None, "panic: foo bar failed"),
        ("Error: connect ECONNREFUSED", None, "Error: connect ECONNREFUSED"),
        ("- nothing of the kind", None, "- nothing of the kind"),
    ],
)
def test_a_line_without_a_time(line: str, level: str | None, text: str) -> None:
    assert read_head(line, DAY, UTC)[:3] == (text, None, level)


def test_syslog_names_host_and_service() -> None:
    head = read_head("Mar  9 09:24:04 web-1 sshd[17600]: Failed password", DAY, UTC)
    assert head.time == datetime(2026, 3, 9, 9, 24, 4, tzinfo=UTC)
    assert (head.host, head.service) == ("web-1", "sshd")
    assert head.text == "web-1 sshd[17600]: Failed password"


@pytest.mark.parametrize(
    ("odd", "text", "flags"),
    [
        ("plain", "plain", ()),
        ("e\u0301te\u0301", "été", ()),
        ("a\x00b\x07c", "a b c", ("control",)),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd", ()),
        ("pa\u200bss\ufeff", "pass", ("zero_width",)),
        ("\U0001f469\u200d\U0001f467", "\U0001f469\u200d\U0001f467", ()),
        ("x\ud800y", "x\ufffdy", ("lone_surrogate",)),
        ("\x1b[0m\x1b[32mgreen\x1b[0m \x1b]0;title\x07end", "green end", ("ansi",)),
        ("  a  \n\tb\t \n\n", "a\n\tb", ()),
    ],
)
def test_normalise(odd: str, text: str, flags: tuple[str, ...]) -> None:
    assert normalise(odd) == (text, flags)


@given(st.text(st.characters(exclude_categories=[])))
def test_normal_text_stays_as_it_is_and_can_be_encoded(text: str) -> None:
    normal, _ = normalise(text)
    normal.encode()
    assert normalise(normal)[1] == ()


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("The disk is full", "en"),
        ("磁盘已满，订单服务 order-service 无法写入", "zh"),
        ("order-service timeout after 30 s: 超时", "en"),
        ("注文サービスがタイムアウトしました", "other"),
        ("Сервис недоступен", "other"),
        ("El servicio no está disponible", "en"),
        ("12345 --- 67", "other"),
        ("１２３！", "other"),
    ],
)
def test_language(text: str, lang: str) -> None:
    assert language(text) == lang


@pytest.mark.parametrize(
    ("value", "name", "level"),
    [
        ("FATAL", "level", "critical"),
        ("warn", "level", "warning"),
        ("ERR", "level", "error"),
        ("trace", "level", "debug"),
        ("DEBUG5", "lvl", "debug"),
        ("警告", "级别", "warning"),
        (3, "severity", "error"),
        ("6", "priority", "info"),
        (30, "level", "info"),
        (40, "level", "warning"),
        (30, "levelno", "warning"),
        (17, "severitynumber", "error"),
        ("gold", "level", None),
        (True, "level", None),
        (61, "level", None),
        (None, "level", None),
    ],
)
def test_levels(value: Any, name: str, level: str | None) -> None:
    assert level_of(value, name) == level


@pytest.mark.parametrize(
    ("value", "rating"),
    [
        (4, 4.0),
        ("4.0", 4.0),
        ("4/5", 4.0),
        ("5星", 5.0),
        ("三星", 3.0),
        ("★★★★☆", 4.0),
        ("4 stars", 4.0),
        ("8 out of 10", 8.0),
        (float("nan"), None),
        (10**400, None),
        (True, None),
        ("very good", None),
        ("", None),
    ],
)
def test_ratings(value: Any, rating: float | None) -> None:
    assert rating_of(value) == rating
