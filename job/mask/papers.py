"""Finding what identifies or reaches a person by its name or shape: papers, plates, accounts, ids.

Invariant: what has no check digit of its own (a passport, an old id number, a contact's name) is
found only right behind a word for it; an IBAN must pass its check, a licence plate must have the
form and the province of one.

Sources: ISO 13616 (IBAN, ISO 7064 MOD 97-10), GA 36-2018 (Chinese licence plates), GB 11643-1989
(the id of 15 digits), the rules of WeChat and QQ for their ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from job.mask.private import Found
from job.mask.shadow import Shadow
from job.words import listed

_LINK = r"(?:\\{0,7}[\"'\])）]?\s{0,3}(?:[:：=#]|is|was|是|为)?\s{0,3}\\{0,7}[\"']?)"
_PAPER_HINTS = frozenset(
    listed(
        "passport, ssn, social sec, licen, card, id no, id number",
        "身份证, 证件, 護照, 护照, 通行证, 驾驶证, 社保",
    )
)
_PAPER = re.compile(
    r"(?:passport|driver'?s? licen[sc]e|(?<![a-z])id[ _-]?card|(?<![a-z])id[ _-]no(?![a-z])"
    r"|身份证|证件|護照|护照|通行证|驾驶证|社保卡?)"
    r"(?:[ _-]?(?:number|num|no\.?|id)(?![a-z])|号码?)?"
    + _LINK
    + r"(?P<value>[a-z]{0,3}[0-9]{6,17}[0-9x](?![a-z0-9_-]))"
    r"|(?:(?<![a-z])ssn|social security(?: number| no\.?)?)"
    + _LINK
    + r"(?P<ssn>[0-9]{3}[ -]?[0-9]{2}[ -]?[0-9]{4})(?![0-9])",
)
_ID_IN_GROUPS = re.compile(
    r"(?<![0-9])[1-9][0-9]{5}[ -](?:19|20)[0-9]{6}[ -][0-9]{3}[0-9Xx](?![0-9])"
)

_PLATE = re.compile(
    "[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼]"
    r"[A-HJ-NP-Z][ ·•・.-]?(?=[A-HJ-NP-Z]{0,3}[0-9])[A-HJ-NP-Z0-9]{4,5}[A-HJ-NP-Z0-9挂学警港澳]"
    r"(?![A-Za-z0-9])"
)
_PLATE_NAMED = re.compile(
    r"(?<![a-z])(?:licen[cs]e[ _-]plate|plate[ _-](?:number|no))(?![a-z])\.?"
    + _LINK
    + r"(?P<value>(?=[a-z -]{0,8}[0-9])[a-z0-9][a-z0-9 -]{3,8}[a-z0-9])"
)

_IBAN = re.compile(
    r"[A-Z][A-Z][0-9]{2}(?<![A-Za-z0-9_].{4})(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?"
    r"(?![A-Za-z0-9])"
)
_CARD_NAMED = re.compile(
    r"(?:银行卡|储蓄卡|信用卡|借记卡|银行账|银行帐|收款账|card[ _-]?(?:number|num|no)"
    r"|account[ _-]?(?:number|no))"
    r"(?:户|号|号码|卡号)*\.?" + _LINK + r"(?P<value>[0-9](?:[ -]?[0-9]){11,18})(?![0-9])"
)
_CARD_HINTS = frozenset(listed("card, account, 银行, 卡, 账"))

_CONTACT_HINTS = frozenset(listed("wechat, weixin, wxid, qq, telegram, 微信, 薇信, 抖音, 支付宝"))
_CONTACT = re.compile(
    r"(?P<wxid>wxid_[a-z0-9]{8,24})"
    r"|(?:微信|薇信|wechat|weixin|telegram|抖音|支付宝)"
    r"(?:(?:[ _-]?(?:id|no\.?|account)|号码?|账号|帐号|同号)" + _LINK + r"|\s?[:：]\s?|是|\s)"
    r"@?(?P<contact>(?=[a-z_-]{0,20}[0-9_-])[a-z][a-z0-9_-]{5,19})(?![a-z0-9_.-])"
    r"|(?<![a-z])qq(?:号码?|群|[ _-]?(?:id|no\.?|number))?"
    + _LINK
    + r"(?P<qq>[1-9][0-9]{4,11})(?![0-9a-z.])"
)
_PHONE_IN_NAME = re.compile(r"1(?<=[a-z]1)[3-9][0-9]{9}(?![0-9a-z])")
_NAME_WITH_PHONE = re.compile(r"(?<![a-z])(?:tel|phone|mobile|cell|wx|weixin|qq|user|uid)\Z")
_NAMES_WITH_PHONE = frozenset(listed("tel, phone, mobile, cell, wx, weixin, qq, user, uid"))
CONTACT_WORDS = _CONTACT_HINTS | _NAMES_WITH_PHONE
"""Without one of these hints there is no contact to find."""
_HOST = re.compile(r"(?<![a-z0-9])ip-(?P<value>(?:[0-9]{1,3}-){3}[0-9]{1,3})(?![0-9])")


PAPER_WORDS = _PAPER_HINTS | {"plate"}
"""Without one of these hints there is no paper to find in a text of ASCII."""


def papers(shadow: Shadow) -> Iterator[Found]:
    """Passports, ids by name, social security numbers and licence plates, as `id_card`."""
    text, lower, hints = shadow
    if not hints.isdisjoint(_PAPER_HINTS):
        for match in _PAPER.finditer(lower):
            yield _named(match, "id_card", text)
        for match in _ID_IN_GROUPS.finditer(text):
            value = match[0].replace(" ", "").replace("-", "").upper()
            yield Found(*match.span(), "id_card", value)
    if "plate" in hints:
        yield from (_named(match, "id_card", text) for match in _PLATE_NAMED.finditer(lower))
    if not text.isascii():
        for match in _PLATE.finditer(text):
            yield Found(*match.span(), "id_card", "".join(c for c in match[0] if c.isalnum()))


def accounts(shadow: Shadow) -> Iterator[Found]:
    """IBANs, and numbers that are called a bank's, as `card`."""
    text, lower, hints = shadow
    for match in _IBAN.finditer(text):
        value = match[0].replace(" ", "").replace("-", "")
        if is_iban(value):
            yield Found(*match.span(), "card", value)
    if not hints.isdisjoint(_CARD_HINTS):
        yield from (_named(match, "card", text) for match in _CARD_NAMED.finditer(lower))


def contacts(shadow: Shadow) -> Iterator[Found]:
    """Ids of messengers and phones that are part of a name, as `phone`."""
    text, lower, hints = shadow
    if not hints.isdisjoint(_CONTACT_HINTS):
        yield from (_named(match, "phone", text) for match in _CONTACT.finditer(lower))
    if not hints.isdisjoint(_NAMES_WITH_PHONE):
        for match in _PHONE_IN_NAME.finditer(lower):
            start, end = match.span()
            if _NAME_WITH_PHONE.search(lower, max(0, start - 8), start):
                yield Found(start, end, "phone", match[0])


def hosts(shadow: Shadow) -> Iterator[Found]:
    """Addresses in the names of machines: `ip-10-0-0-1.ec2.internal`, as `ip`."""
    for match in _HOST.finditer(shadow.lower):
        octets = match["value"].split("-")
        if all(int(octet) < 256 for octet in octets):
            yield Found(*match.span("value"), "ip", ".".join(octets))


def is_iban(value: str) -> bool:
    """Whether 15 to 34 letters and digits pass the check of ISO 13616."""
    if not 15 <= len(value) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in value[4:] + value[:4])) % 97 == 1


def _named(match: re.Match[str], kind: str, text: str) -> Found:
    group = match.lastgroup or "value"
    start, end = match.span(group)
    value = text[start:end]
    if kind != "phone" or value.isdigit():
        value = "".join(c for c in value if c.isalnum()).upper()
    return Found(start, end, kind, value)
