"""Credentials that are told by their own form, whatever stands around them.

Invariant: a form is one that its issuer documents (a prefix and a length), an armoured private
key, a password in a URL, or a header whose value can be nothing else; a hash, a commit, a UUID or
an id of an order has none of them. Every pattern is tried only where a hint of it is in the text,
and every repetition that another may follow is bounded.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator

from job.mask.shadow import Shadow
from job.words import listed

Span = tuple[int, int]

_HINTS = frozenset(
    listed(
        "sk-, xox, xapp-, xai-, glpat-, gldt-, glrt-, glptt-, glcbt-, pypi-, pplx-, nvapi-, cspx-",
        "pmak-",
        "eyj, akia, akid, asia, ltai, aiza, hvs., ya29., sg., $2, age-secret",
    )
)
_JOINED = re.compile("_(?=[0-9]{0,20}[A-Za-z])[A-Za-z0-9]{10}")
"""What every form has, looked for before the costly search: its first letters, or `_` and ten
letters and digits (`ghp_`, `sk_live_`)."""

_FORM = re.compile(
    r"""
    [srALgxehnpSGyPwdvf$] (?<! [A-Za-z0-9_] . )
    (?: (?<=s)k-(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{16,}
      | (?<=[sr])k_(?:live|test)_[A-Za-z0-9]{10,}
      | (?<=w)hsec_[A-Za-z0-9+/=]{20,}
      | (?<=A)(?:KIA|SIA)[0-9A-Z]{16}
      | (?<=L)TAI[0-9A-Za-z]{12,26}
      | (?<=A)KID[0-9A-Za-z]{28,44}
      | (?<=g)h[pousr]_[A-Za-z0-9]{30,}
      | (?<=g)ithub_pat_[A-Za-z0-9_]{30,}
      | (?<=g)l(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_.-]{20,}
      | (?<=g)sk_[A-Za-z0-9]{30,}
      | (?<=x)(?:ox[abceoprs]|app)-[A-Za-z0-9-]{10,}
      | (?<=x)ai-[A-Za-z0-9]{30,}
      | (?<=A)Iza[0-9A-Za-z_-]{35}
      | (?<=y)a29\.[0-9A-Za-z_-]{20,}
      | (?<=G)OCSPX-[0-9A-Za-z_-]{20,}
      | (?<=e)yJ[A-Za-z0-9_-]{8,600}\.[A-Za-z0-9_-]{4,6000}(?:\.[A-Za-z0-9_-]{0,1000}){0,3}
      | (?<=h)f_[A-Za-z0-9]{30,}
      | (?<=h)vs\.[A-Za-z0-9_-]{20,}
      | (?<=n)pm_[A-Za-z0-9]{36}
      | (?<=n)vapi-[A-Za-z0-9_-]{30,}
      | (?<=p)plx-[A-Za-z0-9]{30,}
      | (?<=p)ypi-[A-Za-z0-9_-]{40,}
      | (?<=P)MAK-[A-Za-z0-9-]{20,}
      | (?<=r)8_[A-Za-z0-9]{30,}
      | (?<=d)(?:op_v1|ckr_pat)_[A-Za-z0-9_-]{20,}
      | (?<=s)hp(?:at|ca|pa|ss)_[A-Za-z0-9]{20,}
      | (?<=f)igd_[A-Za-z0-9_-]{20,}
      | (?<=S)G\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
      | (?<=A)GE-SECRET-KEY-[A-Z0-9]{40,}
      | (?<=\$)2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}
    )
    (?! [A-Za-z0-9_] )
    """,
    re.VERBOSE,
)
_PRIVATE_KEY = re.compile(
    r"-{4,5} ?BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
    r"(?:.*?-{4,5} ?END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}|.*)",
    re.DOTALL,
)
_KEY_IN_BASE64 = re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/=\n]{20,}")
"""`-----BEGIN` in base64, as Kubernetes and CI variables hold keys."""
_KEY_BODY = re.compile(r"(?m)^[ \t]{0,4}([A-Za-z0-9+/]{64}|[A-Za-z0-9+/]{70}|[A-Za-z0-9+/]{76})$")
"""A line of an armoured key whose heading is in another record (RFC 7468: 64 characters)."""
_KEY_SHORTEST = 64
_KEY_LINE = 80
"""Characters of such a line with what is before it."""
_KEY_TAIL = re.compile(r"[A-Za-z0-9+/]{10,75}={0,2}")
_IN_URL = re.compile(r"://([^/\s:@<\"']{0,64}):([^/\s<\"']{1,200})@(?=[\w\[<.-])")
_USER_IN_URL = re.compile(r"://([A-Za-z0-9_-]{20,200})@(?=[\w\[])")
_BEARER = re.compile(r"bearer[ :=\"']{1,3}([A-Za-z0-9._~+/=-]{8,})", re.IGNORECASE)
_BASIC = re.compile(r"basic[ :=\"']{1,3}([A-Za-z0-9+/]{6,}={0,2})", re.IGNORECASE)
_AUTHORIZATION = re.compile(
    r"authorization\\{0,3}[\"']?\s?[:=]\s?\\{0,3}[\"']?(?:(?:token|apikey|api-key|digest|negotiate"
    r"|ntlm|basic|hmac|signature|aws)\s)?([A-Za-z0-9._~+/:=-]{8,})",
    re.IGNORECASE,
)
_HEADERS = frozenset(listed("bearer, basic, authorization, cookie"))
_COOKIE = re.compile(
    r"cookie\\{0,3}[\"']?\s?[:=]\s?\\{0,3}[\"']?"
    r"([\w.$-]{1,80}=[^\s;,\"'\\<>]{3,4000}(?:;\s?[\w.$-]{1,80}=[^\s;,\"'\\<>]{1,4000}){0,60}"
    r"|[A-Za-z0-9._~+/%-]{12,4000})",
    re.IGNORECASE,
)
_NEAR = 120
"""Characters between the id and the secret of one key."""
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
_BOT = re.compile(r"(?<![0-9])[0-9]{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])")
_WEBHOOK = re.compile(
    r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/-]{20,})"
    r"|bot/v2/hook/([\w-]{20,})|discord(?:app)?\.com/api/webhooks/([\w/-]{20,})"
    r"|webhook/(?:send\?key=)?([0-9a-f-]{32,})|webhook\.office\.com/(\S{20,})"
)


def by_form(shadow: Shadow) -> list[Span]:
    """Spans of what is a credential by its form; they may overlap."""
    text, _, hints = shadow
    spans: list[Span] = []
    if not hints.isdisjoint(_HINTS) or _JOINED.search(text):
        spans += (match.span() for match in _FORM.finditer(text))
        if "akia" in hints or "asia" in hints:
            spans += _beside_ids(text, spans.copy())
    if "private key" in hints:
        spans += (match.span() for match in _PRIVATE_KEY.finditer(text))
    if "ls0tls1crudjti" in hints:
        spans += (match.span() for match in _KEY_IN_BASE64.finditer(text))
    if "@" in text and "://" in text:
        spans += (match.span(2) for match in _IN_URL.finditer(text))
        spans += (m.span(1) for m in _USER_IN_URL.finditer(text) if _has_digit(m[1]))
    if "hook" in hints:
        spans += (m.span(m.lastindex or 0) for m in _WEBHOOK.finditer(text))
    if ":AA" in text:
        spans += (match.span() for match in _BOT.finditer(text))
    if not hints.isdisjoint(_HEADERS):
        spans += _in_headers(text, hints)
    if len(text) <= _KEY_LINE or "\n" in text:
        spans += _key_lines(text)
    return spans


def _beside_ids(text: str, ids: list[Span]) -> Iterator[Span]:
    """The secrets that stand near the ids of AWS keys."""
    for start, end in ids:
        if text.startswith(("AKIA", "ASIA"), start):
            near = max(0, start - _NEAR), min(len(text), end + _NEAR)
            yield from (m.span() for m in _AWS_SECRET.finditer(text, *near) if _is_mixed(m[0]))


def _in_headers(text: str, hints: frozenset[str]) -> Iterator[Span]:
    if "bearer" in hints:
        yield from (m.span(1) for m in _BEARER.finditer(text) if is_random(m[1]))
    if "basic" in hints:
        yield from (m.span(1) for m in _BASIC.finditer(text) if _is_a_pair(m[1]))
    if "authorization" in hints:
        yield from (m.span(1) for m in _AUTHORIZATION.finditer(text) if is_random(m[1]))
    if "cookie" in hints:
        yield from (m.span(1) for m in _COOKIE.finditer(text) if "=" in m[1] or _has_digit(m[1]))


def _key_lines(text: str) -> Iterator[Span]:
    """Lines of an armoured key without its heading, and the shorter one that ends it."""
    if not any(_KEY_SHORTEST <= len(line) <= _KEY_LINE for line in text.split("\n")):
        return
    lines = [match for match in _KEY_BODY.finditer(text) if _is_mixed(match[1])]
    for match in lines:
        yield match.span(1)
    if lines and text[lines[-1].end() : lines[-1].end() + 1] == "\n":
        tail = _KEY_TAIL.match(text, lines[-1].end() + 1)
        if tail and text[tail.end() : tail.end() + 1] in ("", "\n"):
            yield tail.span()


def is_random(value: str) -> bool:
    """Whether a value can be a token: long, or with a digit in it."""
    return len(value) >= 20 or _has_digit(value)


def _has_digit(value: str) -> bool:
    return any(c.isdigit() for c in value)


def _is_mixed(value: str) -> bool:
    """Upper and lower case and digits, as random base64 of this length always has and a
    hexadecimal hash or a path has not."""
    return (
        _has_digit(value)
        and any(c.isupper() for c in value)
        and any(c.islower() for c in value)
        and value.count("/") <= len(value) // 10
    )


def _is_a_pair(encoded: str) -> bool:
    """Whether base64 holds `user:password`."""
    try:
        pair = b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
        return b":" in pair and pair.decode("utf-8").isprintable()
    except (Base64Error, UnicodeDecodeError):
        return False
