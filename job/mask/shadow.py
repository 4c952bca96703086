"""A text as the finders of private values look at it: decoded, in lower case, with its hints.

Invariant: a shadow is the same length as its text, character for character, so that a span of one
is a span of the other. A hint is a word without which a finder cannot find anything; all of them
are looked for in one pass, which costs a sixth of asking for each.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick

from job.text import normalise
from job.words import listed, lowered

HINTS = listed(
    "pass, passport, pw, token, secret, credential, sessid, key, signature, code, otp, cvv, cvc",
    "pin, bearer, basic, authorization, cookie, hook, mysql, curl",
    "sk-, xox, xapp-, xai-, glpat-, gldt-, glrt-, glptt-, glcbt-, pypi-, pplx-, nvapi-, cspx-",
    "pmak-, eyj, akia, akid, asia, ltai, aiza, hvs., ya29., sg., $2, age-secret",
    "private key, ls0tls1crudjti",
    "ssn, social sec, licen, card, id no, id number, plate, account, iban",
    "verif, confirm, activat, reset, recover, invit, magic, unsubscribe, signin, sign-in, login",
    "auth, tel, phone, mobile, cell, user, uid, wx",
    "wechat, weixin, wxid, qq, telegram, ip-, s your",
    "密码, 口令, 密碼, 令牌, 密钥, 凭证, 密鑰, 验证码, 驗證碼, 校验码, 动态码, 动态密码, 动态口令",
    "确认码, 提取码, 安全码, 激活码, 身份证, 证件, 護照, 护照, 通行证, 驾驶证, 社保, 银行, 卡, 账",
    "微信, 薇信, 抖音, 支付宝",
)
_NO_HINTS: frozenset[str] = frozenset()
_AUTOMATON = AhoCorasick(HINTS)

_FULL_WIDTH = re.compile("[０-９＠]")
_TO_ASCII = {
    0xFF00 + c - 0x20: c for c in range(0x21, 0x7F) if chr(c).isalnum() or chr(c) in "@.-+_"
}
_ENCODED = re.compile(
    r"%(?P<url>[237][0-9A-Fa-f]|40|5[BbDd])|\\u00(?P<json>[237][0-9A-Fa-f]|40|5[BbDd])"
    r"|&(?:\#(?P<decimal>3[2-9]|4[0-7]|58|6[0-4]);|(?P<named>quot|amp|apos|lt|gt|nbsp|commat);)"
)
"""Punctuation as URLs, JSON strings and HTML write it."""
_JSON_CODE = re.compile(r"\\u([0-9A-Fa-f]{4})")
_JSON_CODES = re.compile(r"(?:\\{1,15}u(?:[1-9A-Fa-f][0-9A-Fa-f]{3}|0[1-9A-Fa-f][0-9A-Fa-f]{2}))+")
_URL_CODES = re.compile(r"(?:%[89A-Fa-f][0-9A-Fa-f]){2,}")
_ENTITIES = {"quot": '"', "amp": "&", "apos": "'", "lt": "<", "gt": ">", "nbsp": " ", "commat": "@"}


class Shadow(NamedTuple):
    """`text`: see `as_ascii`. `lower`: in lower case. `hints`: which of HINTS are in it."""

    text: str
    lower: str
    hints: frozenset[str]


def readable(text: str) -> str:
    """`text` with letters beyond ASCII as themselves where JSON or a URL wrote them as codes
    (`\\u5bc6`, `%E5%AF%86`): no reader and no finder sees a word in those."""
    if "\\u" in text:
        text = _JSON_CODES.sub(_from_json, text)
    if "%" in text:
        text = _URL_CODES.sub(_from_url, text)
    return text


def _if_seen(decoded: str, written: str) -> str:
    """What was decoded, unless it holds line ends or what no reader sees, which cleaning took
    out."""
    hides = normalise(decoded)[1] or decoded.splitlines() != [decoded]
    return written if hides else decoded


def _from_json(match: re.Match[str]) -> str:
    units = _JSON_CODE.findall(match[0])
    data = b"".join(int(unit, 16).to_bytes(2, "big") for unit in units)
    try:
        return _if_seen(data.decode("utf-16-be"), match[0])
    except UnicodeDecodeError:
        return match[0]


def _from_url(match: re.Match[str]) -> str:
    try:
        return _if_seen(bytes.fromhex(match[0].replace("%", "")).decode("utf-8"), match[0])
    except UnicodeDecodeError:
        return match[0]


def shadow_of(text: str) -> Shadow:
    """The shadow of a text."""
    shown = as_ascii(text)
    lower = lowered(shown)
    try:
        matches = _AUTOMATON.find_matches_as_indexes(lower, overlapping=True)
    except UnicodeEncodeError:
        # A lone surrogate, which no encoding has: any other character does as well.
        encodable = lower.encode("utf-8", "replace").decode()
        matches = _AUTOMATON.find_matches_as_indexes(encodable, overlapping=True)
    hints = frozenset([HINTS[index] for index, _, _ in matches]) if matches else _NO_HINTS
    return Shadow(shown, lower, hints)


def as_ascii(text: str) -> str:
    """The same text, character for character, with full-width digits, letters and `@` as ASCII
    where it has such digits, and with punctuation that is encoded (`%3D`, `\\u0022`, `&quot;`) as
    itself and blanks (behind `@`: letters): what is written so is as private."""
    if not text.isascii() and _FULL_WIDTH.search(text):
        text = text.translate(_TO_ASCII)
    if "%" in text or "\\u00" in text or "&" in text:
        text = _ENCODED.sub(_decoded, text)
    return text


def _decoded(match: re.Match[str]) -> str:
    width = len(match[0])
    if match["named"]:
        char = _ENTITIES[match["named"]]
    elif match["decimal"]:
        char = chr(int(match["decimal"]))
    else:
        char = chr(int(match["url"] or match["json"], 16))
    if char.isalnum() or not char.isprintable():
        return match[0]
    return char + ("x" if char == "@" else " ") * (width - 1)
