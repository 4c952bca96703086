"""What varies in an operation log becomes a placeholder, so that equal events have equal templates.

Invariant: two lines that differ in a status or an error code, in a word, or in whether anything
failed at all (`errors=0`) keep different templates: to merge two different things is worse than to
keep two equal ones apart. Numbers, sizes, times, ids, hashes, addresses and masked values vary.
"""

from __future__ import annotations

import re
from string import ascii_lowercase

from job.mask import ALIAS
from job.words import holds_any, listed, lowered

_VARIES = "<*>"

_NUMBER = re.compile(
    r"""
    [0-9]
    (?<! (?:east|west|orth|outh|tral)-[0-9] )   # a cloud region is a place: us-east-1
    (?<! ipv[0-9] ) (?<! /v[0-9] )              # and these are names: ipv6, /v2/orders
    [0-9]* (?: (?: [.,:/_-] | _[A-Za-z]_ | [eE][-+]? ) [0-9]+ )*
    (?: [ ]? (?: [KMGT]i?B | [kKM]b | [munµ]s | [smhd] ) (?![A-Za-z0-9_]) )?
    """,
    re.VERBOSE,
)
_MINUS = re.compile(r"(?<![A-Za-z0-9>_)\]])-(?=<\*>)")

_THREAD = re.compile(r"\A\[[^\]\n]{1,400}\](?= [a-z][\w$]*(?:\.[\w$]+){2,}:? )")
"""The thread before a logger's full name is where a line was written, not what happened."""

_HAS_ID = re.compile(r"[0-9](?:[A-Za-z]{1,20}[0-9]|[a-fA-F]|(?<=[a-fA-F][0-9]))")
_ID = re.compile(
    r"""
    (?<![A-Za-z0-9])
    (?: [0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}
      | 0[xX][0-9a-fA-F]{1,64}
      | (?=[a-f]{0,64}[0-9]) (?=[0-9]{0,64}[a-f]) [0-9a-f]{8,128}
      | (?=[A-F]{0,64}[0-9]) (?=[0-9]{0,64}[A-F]) [0-9A-F]{8,128}
      | (?<=[-=/\#]) (?=[a-f]{0,6}[0-9]) (?=[0-9]{0,6}[a-f]) [0-9a-f]{5,7}
      | (?=[A-Za-z0-9]{6}) (?: (?:[A-Z]{1,40}|[A-Za-z]{1,3}) [0-9]{1,40} ){2,40}
        (?: [A-Z]{1,40} | [A-Za-z]{1,3} )?
      | (?=[A-Za-z0-9]{6}) (?: [0-9]{1,40} (?:[A-Z]{1,40}|[A-Za-z]{1,3}) ){2,40} [0-9]{0,40}
    )
    (?![A-Za-z0-9])
    """,
    re.VERBOSE,
)
"""UUIDs, hexadecimal numbers (short ones behind a joint: `pod=web-d0b40`), and runs in which short
letter and digit groups alternate. A longer lower-case word inside (`Log4j2Config`) makes it a name,
and a name stays."""

_TOP = r"(?:com|net|org|edu|gov|cn|io|local|internal|lan|corp)(?![A-Za-z0-9.-])"
_HAS_MACHINE = re.compile(
    r"[0-9][A-Za-z0-9-]{0,62}+(?:\.[A-Za-z][A-Za-z0-9-]{0,62}+){1,6}\." + _TOP
)
_MACHINE = re.compile(
    r"(?<![A-Za-z0-9.-])(?!(?:us|eu|ap|sa|ca|me|af|cn)-)"
    r"(?:[0-9]|[A-Za-z][A-Za-z0-9]{0,40}-(?=[A-Za-z0-9-]{0,40}[0-9]))[A-Za-z0-9-]{0,62}"
    r"((?:\.[A-Za-z][A-Za-z0-9-]{0,62}){1,6}\." + _TOP + ")"
)
"""One machine of a fleet: its first label has a digit. `s3.amazonaws.com` is a service."""

_TOKEN = re.compile(
    r"[A-Z](?<![A-Za-z0-9_-].)[A-Z]{0,11}(?P<joint>[-_]?)[0-9]{1,6}(?:-[0-9]{1,6})?[A-Z]?"
    r"(?![A-Za-z0-9_]|-[0-9]|\.[A-Za-z])"
)
_IDS = frozenset(
    listed(
        "ORD, ORDER, SO, PO, INC, REQ, TKT, TICKET, CASE, JOB, TASK, USER, UID, PID, TID, ID, SKU"
    )
    + listed("TXN, INV, NO, NODE, HOST")
)
"""Codes by their form: `ORA-00942`, `E1234`, `CVE-2021-44228`, `UTF-8`; not where the letters
name an id (`ORD-123456`)."""

_NAMES = listed(
    "status, state, code, errno, error, err, exit, exited, reason, result, signal, sqlstate, rc",
    "ret, exception, 错误, 状态, 返回, 返回值, 响应, 代码, 异常, 信号, 码",
)
"""What stands before a code. One of seven digits and more is an id, a time or a size, unless it is
called a code outright; then of eleven."""
_OUTRIGHT = ("code", "errno", "码", "代码")

_ANSWERS = listed(
    "got, received, receives, returned, returns, return, response, responded, failed",
    "responded with, responds with, failed with, fails with, replied with, answered with, http",
    "http/1.0, http/1.1, http/2, http/2.0, 返回, 响应, 收到, 失败",
)
"""What stands before an HTTP status."""

_FAILURES = listed(
    "error, errors, errs, failure, failures, failed, fail, exceptions, exception, rejected",
    "dropped, lost, timeout, timeouts, 失败, 错误, 异常",
)
_FAILED = listed("err, fail, except, reject, dropp, lost, timeout, 失败, 错误, 异常")
_COUNTED = re.compile(
    r"\s?(?:bytes?|rows?|items?|records?|messages?|times?|m?s\b|sec|results?|events?|lines?|files?"
    r"|tokens?|entries|条|个|次|行|字节|毫秒|秒)"
)
_HINTS = listed(
    "stat, code, err, exit, reason, result, signal, http, fail, return, got, respon, receiv, rc=",
    "ret=, ret:, except, reject, drop, timeout, lost",
)
_HINTS_ZH = listed("错, 态, 返回, 代码, 异常, 信号, 响应, 失败, 码, 收到")
"""One of these is in every text that holds a code by name: the cheap question first."""

_LINKS = " \t:=：#\"'()[]-+_!"
_LINK_ENDS = (" is", " was", " of", " with", "为", "是")
_LINK_WORD = re.compile("(?:" + "|".join(_LINK_ENDS) + r")\Z")
_CODE = re.compile(r"[0-9]+(?:[a-z][0-9a-z]*)?(?:\.[0-9]{1,3}){0,2}")
_BEFORE = 40
"""Characters before a number that may name it."""

_METHOD = "(?:GET|POST|PUT|DELETE|PATCH|HEAD|OPTIONS)"
_REQUEST_HINTS = ("GET ", "POST ", "PUT ", "DELETE ", "PATCH ", "HEAD ", "OPTIONS ")
_REQUEST = re.compile(
    _METHOD + r" [^\s]{1,400}(?: HTTP/[0-9.]{1,4})?\"? (?P<after>[1-5][0-9]{2})(?![0-9.])"
    r"|(?<![0-9.])(?P<before>[1-5][0-9]{2}) " + _METHOD
)


def template(text: str) -> str:
    """`text` with `<*>` for what varies; aliases keep their kind (`<email>`)."""
    if "<" in text:
        text = ALIAS.sub(r"<\1>", text)
    if text[:1] == "[":
        text = _THREAD.sub("[<*>]", text)
    parts: list[str] = []
    done = 0
    for start, end in _codes(text):
        if start >= done:
            parts += (_without_varying(text[done:start]), text[start:end])
            done = end
    parts.append(_without_varying(text[done:]))
    text = "".join(parts)
    return _MINUS.sub("", text) if "-<*>" in text else text


def _without_varying(text: str) -> str:
    if _HAS_ID.search(text):
        text = _ID.sub(_VARIES, text)
    if _HAS_MACHINE.search(text):
        text = _MACHINE.sub(_VARIES + r"\1", text)
    return _NUMBER.sub(_VARIES, text)


def _codes(text: str) -> list[tuple[int, int]]:
    """Where status and error codes stand, left to right."""
    spans = [
        match.span()
        for match in _TOKEN.finditer(text)
        if text[match.start() : match.start("joint")] not in _IDS
    ]
    lower = lowered(text)
    if holds_any(lower, _HINTS) or (not text.isascii() and holds_any(text, _HINTS_ZH)):
        spans += (match.span() for match in _CODE.finditer(lower) if _is_code(lower, match))
    if (" /" in text or " http" in text) and holds_any(text, _REQUEST_HINTS):
        spans += (match.span(match.lastgroup or 0) for match in _REQUEST.finditer(text))
    return sorted(spans)


def _is_code(lower: str, match: re.Match[str]) -> bool:
    start, end = match.span()
    value = match[0]
    before = lower[max(0, start - _BEFORE) : start]
    stem = before.rstrip(_LINKS)
    if value == "0" and (
        stem.endswith(_FAILURES) or lower[end : end + 12].lstrip(" 个次条").startswith(_FAILED)
    ):
        return True
    if len(value) == 3 and "1" <= value[0] <= "5" and stem.endswith(_ANSWERS):
        return not _COUNTED.match(lower, end)
    if stem.endswith(_LINK_ENDS):
        stem = _LINK_WORD.sub("", stem).rstrip(_LINKS)
    digits = len(value) if value.isdigit() else 0
    if stem.endswith(_NAMES):
        longest = 10 if stem.endswith(_OUTRIGHT) or before.endswith("-") else 6
        return digits <= longest
    bare = before.rstrip(ascii_lowercase)
    return bare != before and bare[-1:] in _LINKS and bare.rstrip(_LINKS).endswith(_NAMES)
