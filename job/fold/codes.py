"""Where status and error codes stand in an operation log: numbers that say what happened.

Invariant: a code is known by its own form (`ORA-00942`) or by what names it (`exit code 137`,
`"GET /x HTTP/1.1" 500`, 错误码 1001); what only counts, measures or identifies is none. Where it
cannot be told, it is a code: to merge two different things is worse than to keep equal ones apart.
"""

from __future__ import annotations

import re
from string import ascii_lowercase

from job.words import holds_any, listed, lowered

_TOKEN = re.compile(
    r"[A-Z](?<![A-Za-z0-9_-].)(?P<letters>[A-Z]{0,11})(?P<joint>[-_]?)"
    r"(?P<digits>[0-9]{1,6})(?:-[0-9]{1,6})?[A-Z]?"
    r"(?![A-Za-z0-9_~]|[-:][A-Z0-9]|\.[A-Za-z])"
)
_LIKE_A_TOKEN = re.compile(r"[A-Z]{1,12}[-_]?[0-9]{1,6}(?:-[0-9]{1,6})?")
"""What may be one when its neighbours have been set aside."""
_IDS = frozenset(
    listed(
        "ORD, ORDER, SO, PO, INC, REQ, TKT, TICKET, CASE, JOB, TASK, USER, UID, PID, TID, ID, SKU",
        "TXN, INV, NO, NODE, HOST, CPU, GPU, CORE, SLOT, PORT, DISK, LUN, FAN, PSU, DIMM, RANK",
        "BANK, LINK, VM, SN, IRQ, TTY, RACK, NIC, VLAN, THREAD, WORKER, POD, KB, ROW, COL",
        "SHA, MD",
    )
)
_SHORT = frozenset(listed("E, F, W, H, ERR, ERROR, SEV, UTF, ISO, TLS, HTTP"))
"""Codes by their form: `ORA-00942`, `E1234`, `CVE-2021-44228`, `SEV-1`. With fewer than three
digits most such words are a part of a machine (`CPU0`, `U18`, `RACK-2`), but not under these
letters; and letters that name an id (`ORD-123456`) never make a code."""

_NAMES = listed(
    "status, code, errno, error, err, exit, exited, reason, result, signal, sqlstate, hresult",
    "sqlcode, exception, 错误, 状态, 返回, 返回值, 响应, 代码, 异常, 信号, 码",
)
"""What stands before a code. One of seven digits and more is an id, a time or a size, unless it is
called a code outright; then of eleven."""
_WHOLE_NAME = re.compile(r"(?<![a-z0-9])(?:hr|rc|ret|sig|xid|dsn|smtp|alert)\Z")
"""Short names, which other words end in (`src`, `secret`)."""
_OTHER_CODE = re.compile(
    r"(?:key|scan|hash|bar|zip|post|postal|geo|qr|promo|coupon|voucher|invite|byte|time|area"
    r"|country|verification|tracking)[ _-]?code\Z|(?:号|验证|条|形|维|密|编|件|货|券|惠|请|册)码\Z"
)
"""Codes of a key, a thing or a place; they say nothing of what happened."""
_XID = re.compile(r"xid \(pci:[0-9a-f:.]{1,24}\): ?\Z")
"""NVIDIA's code, before which the card is named."""
_OUTRIGHT = ("code", "errno", "码", "代码")

_ANSWERS = listed(
    "got, received, receives, returned, returns, return, response, responded, failed",
    "responded with, responds with, failed with, fails with, replied with, answered with, http",
    "返回, 响应, 收到, 失败",
)
_PROTOCOL = re.compile(r"http/[0-9](?:\.[0-9])?\Z")
"""What stands before an HTTP status."""

_FAILURES = listed(
    "error, errors, errs, failure, failures, failed, fail, exceptions, exception, rejected",
    "dropped, lost, timeout, timeouts, 失败, 错误, 异常",
)
_FAILED = listed("err, fail, except, reject, dropp, lost, timeout, 失败, 错误, 异常")
_COUNTED = re.compile(
    r"\s?(?:m?s\b|sec|%|dbm?\b|of\b|/[0-9]|条|个|次|行|字节|毫秒|秒"
    r"|(?!status|process|access|was|is|as|has|does|across)[a-z]{2,20}s\b"
    r"|byte\b|row\b|item\b|record\b|time\b|entries)"
)
"""What stands after a number that counts or measures."""
_HINTS = listed(
    "stat, code, err, exit, reason, result, signal, http, fail, return, got, respon, receiv, rc=",
    "ret=, ret:, except, reject, drop, timeout, lost, hr=, sig, xid, dsn, smtp, alert",
)
_HINTS_ZH = listed("错, 态, 返回, 代码, 异常, 信号, 响应, 失败, 码, 收到")
"""One of these is in every text that holds a code by name: the cheap question first."""

_LINKS = " \t:=：#\"'()[]-+_!"
_LINK_ENDS = (" is", " was", " of", " with", "为", "是")
_LINK_WORD = re.compile("(?:" + "|".join(_LINK_ENDS) + r")\Z")
_CODE = re.compile(r"[0-9]+(?:[a-z][0-9a-z]*)?(?:\.[0-9]{1,3}){0,2}")
_BEFORE = 40
"""Characters before a number that may name it."""

METHOD = "(?:GET|POST|PUT|DELETE|PATCH|HEAD|OPTIONS)"
METHODS = ("GET ", "POST ", "PUT ", "DELETE ", "PATCH ", "HEAD ", "OPTIONS ")
_REQUEST = re.compile(
    METHOD + r" [^\s]{1,400}(?: HTTP/[0-9.]{1,4})?\"? (?P<after>[1-5][0-9]{2})(?![0-9.])"
    r"|(?<![0-9.])(?P<before>[1-5][0-9]{2}) " + METHOD
)


_KEPT_DIGIT = re.compile(r"(?<=ipv)[0-9]|(?<=/v)[0-9]|(?<=(?:east|west|orth|outh|tral)-)[0-9]")
"""A digit of a name: `ipv6`, `/v2/orders`, the place `us-east-1`."""


def codes(text: str) -> list[tuple[int, int]]:
    """Where status and error codes stand, left to right."""
    spans = [match.span() for match in _TOKEN.finditer(text) if _is_token(match)]
    lower = lowered(text)
    if _may_hold(text, lower):
        spans += [
            match.span()
            for match in _CODE.finditer(lower)
            if _is_code(lower, *match.span(), match[0])
        ]
    if (" /" in text or " http" in text) and holds_any(text, METHODS):
        spans += (match.span(match.lastgroup or 0) for match in _REQUEST.finditer(text))
    return sorted(spans) if len(spans) > 1 else spans


def telling(text: str) -> list[tuple[int, int]]:
    """Where digits stand whose values can decide what is a code, in a text that holds no HTTP
    request; whatever digits stand there now. The values of all others do not matter."""
    spans = [match.span() for match in _LIKE_A_TOKEN.finditer(text)]
    spans += (match.span() for match in _KEPT_DIGIT.finditer(text))
    lower = lowered(text)
    if _may_hold(text, lower):
        for match in _CODE.finditer(lower):
            # A single 0 and three digits from 100 to 599 are special.
            values = ("0", "1") if len(match[0]) == 1 else (match[0], f"1{match[0][1:]}")
            if any(_is_code(lower, *match.span(), value) for value in values):
                spans.append(match.span())
    return spans


def _may_hold(text: str, lower: str) -> bool:
    return holds_any(lower, _HINTS) or (not text.isascii() and holds_any(text, _HINTS_ZH))


def _is_token(match: re.Match[str]) -> bool:
    letters = match[0][0] + match["letters"]
    if letters in _IDS:
        return False
    return len(match["digits"]) >= 3 or letters in _SHORT


def _is_code(lower: str, start: int, end: int, value: str) -> bool:
    before = lower[max(0, start - _BEFORE) : start]
    stem = before.rstrip(_LINKS)
    if value == "0" and (
        stem.endswith(_FAILURES) or lower[end : end + 12].lstrip(" 个次条").startswith(_FAILED)
    ):
        return True
    status = len(value) == 3 and "1" <= value[0] <= "5"
    if status and (stem.endswith(_ANSWERS) or _PROTOCOL.search(stem)):
        return not _COUNTED.match(lower, end)
    if stem.endswith(_LINK_ENDS):
        stem = _LINK_WORD.sub("", stem).rstrip(_LINKS)
    digits = len(value) if value.isdigit() else 0
    if _names_a_code(stem) or _XID.search(before):
        outright = stem.endswith(_OUTRIGHT)
        longest = 10 if outright or before.endswith("-") else 6
        return digits <= longest and (outright or not _COUNTED.match(lower, end))
    bare = before.rstrip(ascii_lowercase)
    return bare != before and bare[-1:] in _LINKS and _names_a_code(bare.rstrip(_LINKS))


def _names_a_code(stem: str) -> bool:
    if stem.endswith(_NAMES):
        return not _OTHER_CODE.search(stem)
    return _WHOLE_NAME.search(stem) is not None
