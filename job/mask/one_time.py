"""Codes and links that let their bearer in: one-time codes, PINs, card check values, links.

Invariant: a code is found only next to a word for one (验证码, "verification code", OTP); an error
code, a status and an amount have none. Of a link only the token is found, so that its page stays
readable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from job.mask.shadow import Shadow
from job.mask.token_forms import Span
from job.words import listed

_ZH_HINTS = listed(
    "验证码, 驗證碼, 校验码, 动态码, 动态密码, 动态口令, 确认码, 提取码, 安全码, 激活码"
)
_ZH_CODE = re.compile(
    "(?:" + "|".join(_ZH_HINTS) + r")(?:[\s:：=是为\[【“\"'（(]|号码|如下|短信)*"
    r"((?=[A-Za-z]{0,7}[0-9])[A-Za-z0-9]{3,8})(?![A-Za-z0-9]|\.[0-9])(?!\s?(?:[次条个位元分秒年月天]|小时|毫秒))"
)
_ZH_BEFORE = re.compile(
    r"(?<![A-Za-z0-9.])([0-9]{4,8})(?:[\s（(【\[]|是|为|您的?|你的?|本次|登录|注册|的){1,5}(?:"
    + "|".join(_ZH_HINTS)
    + ")"
)
_EN_CODE = re.compile(
    r"(?:codes?|otp|cvv2?|cvc2?|pin(?:[ _-]?number)?)(?:\\{0,7}[\"'])?"
    r"(?:\s?[:=]\s?|\s(?:is|was)[: ]\s?|\s)(?:\\{0,7}[\"'])?"
    r"((?=[a-z]{0,7}[0-9])[a-z0-9]{3,8}|[0-9]{3}[ -][0-9]{3})"
    r"(?![a-z0-9]|\.[0-9])(?!\s(?:(?:ms|s|times)\b|%))"
)
_EN_WHICH = re.compile(
    r"(?:verification|verify|security|confirmation|authentication|auth|login|sign-?in|one[- ]?time"
    r"|2fa|mfa|sms|pass|captcha|otp|activation|recovery|backup|pin)[ _-]{0,2}\Z"
)
_EN_HINTS = frozenset(listed("code, otp, cvv, cvc, pin"))
_EN_BEFORE = re.compile(
    r"(?<![a-z0-9.])(?:g-)?([0-9]{4,8}) (?:is|as) your(?: [\w-]{1,20}){0,4}"
    r" (?:code|pin|otp)\b"
)
_LINK = re.compile(
    r"/(?:verify|verification|verify-email|confirm|confirmation|activate|activation|reset"
    r"|reset[-_]password|password[-_]reset|password|recover|invite|invitation|magic|magic-link"
    r"|unsubscribe|signin|sign-in|login|auth|token)(?:/[\w-]{1,30}){0,2}/"
    r"([A-Za-z0-9_.~=-]{16,})",
    re.IGNORECASE,
)
_ZH_WORDS = frozenset(_ZH_HINTS)
_LINK_HINTS = frozenset(
    listed(
        "verif, confirm, activat, reset, recover, invit, magic, unsubscribe, signin, sign-in",
        "login, auth, token, pass",
    )
)
_PARAMETER = re.compile(
    r"[?&;](?:code|ticket|key|sig|sign|signature|auth|otp|invite|st|k|t|hash|x-amz-signature|oobcode)="
    r"([^\s&#;\"'<>\\,]{16,})",
    re.IGNORECASE,
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_JOINTS = re.compile("[-._~=]")


def one_time(shadow: Shadow) -> list[Span]:
    """Spans of the codes and of the tokens of links."""
    text, lower, hints = shadow
    spans: list[Span] = []
    for name in hints.intersection(_EN_HINTS):
        spans += _after(name, lower)
    if "s your" in hints:
        spans += (match.span(1) for match in _EN_BEFORE.finditer(lower))
    if not hints.isdisjoint(_ZH_WORDS):
        spans += (match.span(1) for match in _ZH_CODE.finditer(text))
        spans += (match.span(1) for match in _ZH_BEFORE.finditer(text))
    if "/" in text and not hints.isdisjoint(_LINK_HINTS):
        spans += (m.span(1) for m in _LINK.finditer(text) if is_random_token(m[1]))
    if "=" in text and "?" in text:
        spans += (m.span(1) for m in _PARAMETER.finditer(text) if is_random_token(m[1]))
    return spans


def _after(name: str, lower: str) -> Iterator[Span]:
    """Codes behind a word for one; "code" alone says nothing."""
    at = lower.find(name)
    while at >= 0:
        if match := _EN_CODE.match(lower, at):
            if name == "code":
                named = _EN_WHICH.search(lower, max(0, at - 16), at) is not None
            else:
                named = not lower[at - 1 : at].isalpha()
            if named:
                yield match.span(1)
        at = lower.find(name, at + len(name))


def is_random_token(value: str) -> bool:
    """Whether part of a link is no word, number or file name: a UUID, or a piece of it holds
    letters and digits and is long, or holds both cases as well."""
    if _UUID.fullmatch(value):
        return True
    for piece in _JOINTS.split(value):
        if any(map(str.isdigit, piece)) and any(map(str.isalpha, piece)):
            both = any(map(str.isupper, piece)) and any(map(str.islower, piece))
            if len(piece) >= (8 if both else 16):
                return True
    return False
