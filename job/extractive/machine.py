"""What machines write of their failures: exceptions, named fields, HTTP statuses, exit codes. Pure.

Invariant: a field whose value says "none" (null, 0, false, ok) is no failure; `masked` has the
length of the text.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import NamedTuple

from job.extractive.spans import sentences, size

_FIELD = re.compile(
    r"(?<![\w.\"'-])(?P<q>[\"']?)(?P<k>[a-z_][\w.-]*)(?P=q)(?P<s>=|\s=\s|:\s?)"
    r"(?P<v>\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[^\s,;}\]\"']*)"
)
_NEXT_FIELD = re.compile(r"[\s,;]+[a-z_][\w.-]*\s?=|,\s*[\"']?[a-z_][\w.-]*[\"']?\s?:|\n")
_PLAIN_WORD = frozenset(
    [
        "error",
        "err",
        "exception",
        "failure",
        "fault",
        "reason",
        "cause",
        "code",
        "status",
        "result",
        "state",
        "outcome",
        "event",
        "action",
        "operation",
        "task",
        "job",
        "step",
        "command",
        "method",
    ]
)
"""Names that before a colon are words of a sentence ("error: no answer")."""

_CODES = re.compile(
    r"(?:\w*(?:error|exception|failure)|err|fault)(?:code|no|type|name|class|id)?$|errorcode$"
)
_MESSAGES = re.compile(
    r"(?:\w*(?:error|exception|failure)|err|fault)"
    r"(?:message|msg|description|desc|details?|text|string)$"
)
_REASONS = re.compile(r"(?:\w*reason|\w*cause)$")
_STATUSES = re.compile(r"(?:\w*status|result|outcome|state)(?:code)?$|(?:response)?code$")
_EXITS = re.compile(r"(?:exit(?:code|status)?|rc|return(?:code|value)?)$")
_ACTIONS = re.compile(
    r"(?:event(?:name|type)?|action|operation|op|method|task|job|step|api|command|cmd)(?:name)?$"
)
_KNOWN = (_CODES, _MESSAGES, _REASONS, _STATUSES, _EXITS, _ACTIONS)
_NOTHING = frozenset(
    (
        "",
        *[
            "null",
            "none",
            "nil",
            "0",
            "false",
            "no",
            "n/a",
            "-",
            "ok",
            "success",
            "{}",
            "[]",
            "undefined",
            "200",
            "无",
        ],
    )
)
_BAD_STATE = re.compile(
    r"(?:fail\w*|error\w*|denied|reject\w*|refused|time(?:d_?)?out|abort\w*|exception|crash\w*|dead|"
    r"unauthori[sz]ed|forbidden|失败|错误|异常|超时|拒绝|中止)$"
)
_BAD_HTTP = re.compile(r"(?:4[0-3]\d|451|499|5[0-3]\d|59\d)$")
_HTTP = re.compile(
    r"(?:http/\d(?:\.\d)?\"?\s+|\b(?:status(?: ?code)?|http(?: status)?|returned|"
    r"responded(?: with)?|response(?: code)?|error code|answered(?: with)?)\s*[:=]?\s*(?:http\s+)?|"
    r"(?:状态码|返回码?|响应码?|报)\s*[:：=]?\s*(?:http\s*)?)"
    r"(?P<s>4[0-3]\d|451|499|5[0-3]\d)(?![\d.%])"
    r"(?!\s*(?:rows?|items?|records?|ms|bytes|kb|mb|条|个|行|次|元|毫秒))"
)
_EXPLAINED = re.compile(r"[^\n:：={\[]{0,40}[:：](?=\s*[^\W\d_])(?!\s*[\w.-]+\s*[=:])\s*")
_REQUEST = re.compile(r"\b(get|post|put|patch|delete|head|options)\s+(/[^\s\"?]*)")
_EXIT = re.compile(
    r"(?:\bexit(?:ed|s)? (?:with )?(?:code |status )?|"
    r"\b(?:exit|return) (?:code|status|value)\s*(?:is|was|of|[:=])?\s*|"
    r"(?:退出码|退出状态码?|返回值)\s*(?:为|是|[:：=])?\s*)(?P<x>-?\d{1,10})(?![\w.])"
)
_STACK = re.compile(
    r"^(?:[ \t]+at \S|[ \t]*file \"|traceback|caused by:|[ \t]*\.\.\. \d+ more|goroutine \d+|"
    r"[ \t]+[\w./-]+:\d+[ \t]*$|during handling of|the above exception)",
    re.MULTILINE,
)
_EXCEPTION = re.compile(
    r"^(?:caused by: |exception in thread \"[^\"\n]*\" |uncaught |unhandled |fatal )?"
    r"(?P<n>[\w.$]*\w(?:exception|error|warning|interrupt|(?<!de)fault|throwable|exit|panic))"
    r"(?::[ \t]*(?P<m>[^\n]*))?$|"
    r"^panic: (?P<gm>[^\n]+)$",
    re.MULTILINE,
)
_NAMED = re.compile(r"(?<![\w.$])[\w.$]*[a-z]{2}(?:exception|error)\b(?!\.\w)")


class Machine(NamedTuple):
    """`event`: the words for it, where the fields give better ones than any clause; `cause`: a
    span; `head`: where the message ends and a stack begins; `masked`: the lower-case text with its
    fields, stack and statuses blanked, for reading as language; `bad`: something failed."""

    bad: bool
    event: str | None
    cause: tuple[int, int] | None
    head: int
    masked: str


def read_machine(text: str, low: str) -> Machine:
    """What of `text` is machine notation."""
    head, traced = _stack(low)
    masked, fields = _fields(low, head)
    event, cause = _from_fields(text, low, fields)
    bad = event is not None
    cause = traced or cause
    if event is None and (status := _HTTP.search(low, 0, head)):
        bad, event = True, _http_event(text, low, status)
        cause = cause or _http_cause(low, status.end(), head)
    if (exit_code := _EXIT.search(low, 0, head)) and int(exit_code["x"]):
        bad = True
    if traced or _NAMED.search(low, 0, head):
        bad = True
    return Machine(bad, event, cause, head, masked)


def _stack(low: str) -> tuple[int, tuple[int, int] | None]:
    """Where the message ends, and the innermost exception's message."""
    first = _STACK.search(low)
    found = list(_EXCEPTION.finditer(low))
    if first is None and not found:
        return len(low), None
    chained = [match for match in found if match[0].startswith("caused by")]
    if chained:
        inner = chained[-1]
    elif found and "the above exception was the direct cause" in low:
        inner = found[0]
    elif found:
        inner = found[-1]
    else:
        return first.start() if first else len(low), None
    start, end = inner.span("m") if inner["n"] else inner.span("gm")
    if start < 0 or size(low[start:end]) < 4:
        start, end = inner.start("n"), inner.end()
    head = min(found[0].start(), first.start() if first else len(low))
    if not low[:head].strip():
        head = len(low)
    return head, (start, end)


def _fields(low: str, head: int) -> tuple[str, dict[str, tuple[int, int]]]:
    """The text without its fields, stack and the rest, and where the telling values stand."""
    fields: dict[str, tuple[int, int]] = {}
    blanks = [(head, len(low))]
    if "=" in low or ":" in low:
        for match in _FIELD.finditer(low, 0, head):
            key = re.sub(r"[_-]", "", "".join(match["k"].split(".")[-2:]))
            known = any(pattern.match(key) for pattern in _KNOWN)
            if match["s"][0] == ":" and not match["q"] and (not known or key in _PLAIN_WORD):
                continue
            start, end = match.span("v")
            quoted = low[start : start + 1] in ("'", '"') and end - start > 1
            if not known:
                blanks.append((match.start(), start if quoted and " " in match["v"] else end))
                continue
            if quoted:
                start, end = start + 1, end - 1
            elif _MESSAGES.match(key) or _REASONS.match(key):
                following = _NEXT_FIELD.search(low, end, head)
                end = following.start() if following else head
            fields.setdefault(key, (start, end))
            blanks.append((match.start(), max(end, match.end())))
    masked = list(low)
    for start, end in blanks:
        masked[start:end] = " " * (end - start)
    return "".join(masked), fields


def _from_fields(
    text: str, low: str, fields: dict[str, tuple[int, int]]
) -> tuple[str | None, tuple[int, int] | None]:
    """The event and the cause that the fields name, if they tell of a failure."""
    found: dict[str, tuple[int, int]] = {}
    for key, (start, end) in fields.items():
        value = low[start:end].strip()
        if value in _NOTHING:
            continue
        if _MESSAGES.match(key):
            found.setdefault("message", (start, end))
        elif _CODES.match(key):
            found.setdefault("code", (start, end))
        elif _REASONS.match(key):
            found.setdefault("reason", (start, end))
        elif _EXITS.match(key):
            if value.lstrip("-").isdigit():
                found.setdefault("code", (start, end))
        elif _STATUSES.match(key):
            if _BAD_STATE.match(value) or _BAD_HTTP.match(value):
                found.setdefault("state", (start, end))
        elif _ACTIONS.match(key):
            found.setdefault("action", (start, end))
    what = found.get("code") or found.get("state") or found.get("message")
    if what is None:
        return None, None
    said = text[slice(*what)].strip()
    if action := found.get("action"):
        said = f"{text[slice(*action)].strip()}: {said}"
    cause = found.get("message") or found.get("reason")
    if cause is not None:
        cause = next(sentences(low, *cause), cause)
    return said, cause if cause != what or "action" in found else None


def _http_cause(low: str, start: int, head: int) -> tuple[int, int] | None:
    """What a status is explained with: `answered 502 in hall 3: no lamp is lit`."""
    mark = _EXPLAINED.match(low, start, head)
    if mark is None:
        return None
    cause = next(sentences(low, mark.end(), head), None)
    return cause if cause and size(low[slice(*cause)]) >= 4 else None


def _http_event(text: str, low: str, status: re.Match[str]) -> str | None:
    """`POST /orders: 502 Bad Gateway`; None where no request is named."""
    request = _REQUEST.search(low)
    if request is None:
        return None
    code = int(status["s"])
    phrase = f" {HTTPStatus(code).phrase}" if code in set(HTTPStatus) else ""
    return f"{text[slice(*request.span())]}: {code}{phrase}"
