"""Finding what is private in a text: e-mail addresses, phones, national ids, cards, IP addresses.

Invariant: a find is a span of the text with a value normalised so that two spellings of one value
are equal (e-mail in lower case, a phone as its digits without the country code of its format).
Numbers that are not private stay: a candidate must stand alone and pass its own check (checksum,
issuer prefix, octets), and one that is named as an order, a size or a time is left alone.

Sources: GB 11643-1999 (resident id checksum, ISO 7064 MOD 11-2), ISO/IEC 7812 (card issuer
prefixes and the Luhn digit), the numbering plans of the Chinese ministry (MIIT) and of NANPA.
Every pattern here begins with a literal or a small set of characters, which the `re` engine skips
to quickly, and every repetition is bounded, so that a hostile text costs linear time.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import NamedTuple

from job.words import listed


class Found(NamedTuple):
    """A private value at `text[start:end]`; `value` is what its alias is made from."""

    start: int
    end: int
    kind: str
    value: str


NUMBER_KINDS = frozenset({"phone", "id_card", "card", "ip"})
"""What `numbers` finds."""

_DOMAIN = re.compile(
    r"@((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,8}([A-Za-z]{2,24}))(?![A-Za-z0-9_])"
)
_LOCAL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._%+'-]{0,62}[A-Za-z0-9_+-])?\Z")
_NOT_A_TOP_DOMAIN = re.compile(
    "service|socket|timer|mount|slice|scope|target|device|path|swap|png|jpe?g|gif|svg|webp|js|ts|css"
    "|json|ya?ml|xml|log|txt|md|html|jar",
    re.IGNORECASE,
)
"""Endings of systemd units and files: `getty@tty1.service`, `icon@2x.png`."""

_NUMBER = re.compile(
    r"""
    [0-9+(] (?<! [A-Za-z0-9] . ) (?<! [A-Za-z0-9_]\. . )
    (?= [0-9.()+ -]{6} )                                  # the shortest is 1.1.1.1
    (?:
      (?P<ip> (?<=[0-9]) [0-9]{0,2} \. [0-9]{1,3} \. [0-9]{1,3} \. [0-9]{1,3} )
    | (?<! [A-Za-z0-9_]- . ) (?:
      (?P<mobile> (?: (?<=1) | (?<=8)6[ -]?1 | (?<=0)086[ -]?1 | (?<=\+)86[ -]?1
          | (?<=\()\+86\)[ ]?1 )
        (?: 3[0-9] | 4[5-9] | 5[0-35-9] | 6[2567] | 7[0-8] | 8[0-9] | 9[0-35-9] )
        (?: [ -]? [0-9]{4} [ -]? [0-9]{4} | \. [0-9]{4} \. [0-9]{4} ) )
    | (?P<mark> (?<=[1-9]) [0-9]{16} [0-9Xx] )
    | (?<! _ . ) (?: (?P<landline>
        (?: (?<=0) (?: 10 | 2[0-9] | [3-9][0-9]{2} ) [ -] [1-9][0-9]{2,3}[ -]?[0-9]{4}
          | (?<=\() 0 (?: 10 | 2[0-9] | [3-9][0-9]{2} ) \) [ -]? [1-9][0-9]{2,3}[ -]?[0-9]{4}
          | (?: (?<=\+) | (?<=0)0 ) 86[ -]? \(? 0? (?: 10 | 2[0-9] | [3-9][0-9]{2} ) \)? [ -]?
            [1-9][0-9]{2,3}[ -]?[0-9]{4} )
        (?: - [0-9]{1,5} )? )
    | (?P<nanp>
        (?: (?<=[2-9]) [0-9]{2} (?P<sep>[-.]) [2-9][0-9]{2} (?P=sep) [0-9]{4}
          | (?<=\() [2-9][0-9]{2} \) [ -]? [2-9][0-9]{2} [-. ] [0-9]{4}
          | (?: (?<=1) | (?<=\+)1 ) [-. ]? \(? [2-9][0-9]{2} \)? [-. ] [2-9][0-9]{2} [-. ] [0-9]{4}
          | (?<=\+)1 [2-9][0-9]{9} ) )
    | (?P<abroad> (?: (?<=\+) | (?<=0)0(?=[2-9][0-9]{0,2}[ ]) ) [2-9][0-9]{0,2}
        (?: [ .-]? \(? [0-9]{1,4} \)? ){2,6} (?<=[0-9]) )
    | (?P<ssn> (?<=[0-8]) [0-9]{2} - [0-9]{2} - [0-9]{4} )
    | (?P<digits> (?<=[0-9]) [0-9]{12,18} )
    | (?P<groups> (?<=[2-9]) [0-9]{3} (?P<gap>[ -])
        (?: [0-9]{4} (?P=gap) [0-9]{4} (?P=gap) [0-9]{1,4} (?: (?P=gap) [0-9]{1,3} )?
          | [0-9]{6} (?P=gap) [0-9]{4,5} ) )
    | (?P<bare> (?<=[0-9]) [0-9]{6,11} )
      ) (?! _ ) ) (?! -[0-9] )
    )
    (?! [A-Za-z0-9] | \.[0-9] )
    """,
    re.VERBOSE,
)

_PHONE = r"(?:phone|mobile|(?<![a-z])tel|telephone|(?<![a-z])cell|电话|手机|座机|热线|联系方式)"
_CALLED_BY_PHONE = re.compile(
    _PHONE + r"(?:[ _]?(?:number|num|no)\.?|号码|号)?[\"']?(?:\s?[:：=#]|\sis|是|为)?\s?[\"']?\Z"
)
_CALLED_A_PHONE = re.compile(_PHONE + r"[^0-9\n]{0,12}\Z|(?:contact|call|联系)[^0-9\n]{0,12}\Z")
_PHONE_LINKS = " :：=#\"'"
_PHONE_ENDS = listed(
    "phone, mobile, tel, cell, number, num, no, no., is, 电话, 手机, 座机, 热线, 方式, 号码, 号",
    "是, 为",
)
_CALLED_A_CARD = re.compile(r"(?:card|visa|卡号|银行卡|信用卡)[^0-9\n]{0,12}\Z")
_CALLED_OTHERWISE = re.compile(
    r"(?:(?:order|trace|span|request|req|message|msg|event|transaction|txn|batch|task|job|record|row"
    r"|serial|item|goods|product|sku|ticket|block|build|seq|sequence)s?[_ -]?(?:id|no|num|number)?"
    r"|(?<![a-z])(?:id|len|ts)|bytes?|size|offset|count|total|length|duration|time|timestamp|nanos"
    r"|millis|memory|version|订单号?|单号|编号|流水号|序号|大小|字节|时间戳|版本)"
    r"[\"')\]]?\s?(?:[:：=#/]|is|是|为)?\s?[\"']?\Z"
)
_BEFORE = 28
"""Characters before a number that may name it."""

_IN_A_ROW = re.compile(r"(?<![0-9-])[0-9]{1,6} \Z")
_ROW_GOES_ON = re.compile(r" [0-9]{1,6}(?![0-9-])")
_VERSION_BEFORE = re.compile(
    r"(?:version|ver|release|版本)[^0-9\n]{0,4}\Z|(?<![a-z])v\.?\Z"
    r"|(?:chrome|chromium|firefox|edga?|opr|opera|safari|electron|sdk|curl|python|java|go)/\Z"
)
_JOINED_NAME = re.compile(r"[a-z_]-\Z")
_MACHINE_BEFORE = re.compile(
    r"(?:ip|host|node|server|srv|addr|address|client|peer|worker|master|vm|from|to|remote)-\Z"
)
_ISSUERS: tuple[tuple[re.Pattern[str], frozenset[int]], ...] = (
    (re.compile("4"), frozenset({13, 16, 19})),
    (re.compile("5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), frozenset({16})),
    (re.compile("3[47]"), frozenset({15})),
    (re.compile("30[0-5]|3[689]"), frozenset({14})),
    (re.compile("35"), frozenset({16})),
    (re.compile("6011|64[4-9]|65"), frozenset({16, 19})),
    (re.compile("62|60|9558|9559"), frozenset({16, 17, 18, 19})),
)
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_ID_BORN = re.compile(r"[1-9][0-9]{5}(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")

_IPV6 = re.compile(
    r"[0-9A-Fa-f:](?<![0-9A-Za-z_:.].)[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![0-9A-Za-z_:])"
)


def emails(text: str) -> list[Found]:
    """E-mail addresses; the shapes of systemd units, file names and `git@host` are not."""
    found = []
    for match in _DOMAIN.finditer(text):
        at = match.start()
        local = _LOCAL.search(text, max(0, at - 64), at)
        if local and local[0] != "git" and not _NOT_A_TOP_DOMAIN.fullmatch(match[2]):
            start, end = local.start(), match.end()
            found.append(Found(start, end, "email", text[start:end].lower()))
    return found


def numbers(text: str) -> list[Found]:
    """Phones, ids, cards and IPv4 addresses: one pass over all that stands alone as a number."""
    judged = [_judge(text, match) for match in _NUMBER.finditer(text)]
    return [found for found in judged if found is not None]


def _judge(text: str, match: re.Match[str]) -> Found | None:
    start, end = match.span()
    notation = match.lastgroup
    before = text[max(0, start - _BEFORE) : start].lower()
    if notation == "bare":
        named = before.rstrip(_PHONE_LINKS).endswith(_PHONE_ENDS) and _CALLED_BY_PHONE.search(
            before
        )
        return Found(start, end, "phone", match[0]) if named else None
    digits = "".join(c for c in match[0] if c.isdigit())
    if " " in match[0] and (_IN_A_ROW.search(before) or _ROW_GOES_ON.match(text, end)):
        return None
    if notation == "ip":
        if not _is_ipv4(match[0]) or _VERSION_BEFORE.search(before):
            return None
        joined = _JOINED_NAME.search(before) and not _MACHINE_BEFORE.search(before)
        if joined and sum(int(octet) >= 20 for octet in match[0].split(".")) < 2:
            # `lib-1.2.3.4` is a version.
            return None
        return Found(start, end, "ip", match[0])
    if notation == "mobile":
        if len(match[0]) == 11 and _called_otherwise(before.rstrip("_")):
            return None
        return Found(start, end, "phone", digits[-11:])
    if notation == "landline":
        return Found(start, end, "phone", digits.removeprefix("00").removeprefix("86"))
    if notation == "nanp":
        return Found(start, end, "phone", digits[-10:])
    if notation == "abroad":
        digits = digits.lstrip("0")
        return Found(start, end, "phone", digits) if 8 <= len(digits) <= 15 else None
    if notation == "ssn":
        area, group, serial = match[0].split("-")
        fits = area not in ("000", "666") and group != "00" and serial != "0000"
        return Found(start, end, "id_card", match[0]) if fits else None
    if len(match[0]) == 18 and is_resident_id(match[0]):
        return Found(start, end, "id_card", match[0].upper())
    if match[0].isdigit() or notation == "groups":
        card = _CALLED_A_CARD.search(before)
        if is_card(digits, any_issuer=bool(card)) and (card or not _called_otherwise(before)):
            return Found(start, end, "card", digits)
    return None


def _called_otherwise(before: str) -> bool:
    return not _CALLED_A_PHONE.search(before) and bool(_CALLED_OTHERWISE.search(before))


def _is_ipv4(text: str) -> bool:
    """Four octets that can be somebody's: no loopback, no netmask, no leading zeros."""
    octets = text.split(".")
    if any(int(octet) > 255 or (len(octet) > 1 and octet[0] == "0") for octet in octets):
        return False
    return octets[0] not in ("0", "127", "255")


def is_resident_id(text: str) -> bool:
    """Whether 18 characters are a Chinese resident id: a birth date inside, and the check digit
    of ISO 7064 MOD 11-2 at the end."""
    if len(text) != 18 or not _ID_BORN.match(text) or not text[:17].isdigit():
        return False
    total = sum(weight * int(digit) for weight, digit in zip(_ID_WEIGHTS, text, strict=False))
    return "10X98765432"[total % 11] == text[17].upper()


def is_card(digits: str, *, any_issuer: bool = False) -> bool:
    """Whether 13 to 19 digits are a payment card's: Luhn digit, and an issuer's prefix and length
    (a tenth of all digit runs pass Luhn; timestamps begin with 1 and no issuer does)."""
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    if not any_issuer and not any(
        len(digits) in lengths and prefix.match(digits) for prefix, lengths in _ISSUERS
    ):
        return False
    doubled = [int(d) * 2 for d in digits[-2::-2]]
    return (
        sum(int(d) for d in digits[-1::-2]) + sum(d - 9 if d > 9 else d for d in doubled)
    ) % 10 == 0


def ipv6(text: str) -> list[Found]:
    """IPv6 addresses but loopback and `::`; `a::b` of a programming language is none."""
    found = []
    for match in _IPV6.finditer(text):
        groups = match[0].split(":")
        if max(map(len, groups)) < 3 and len(groups) < 5:
            continue
        try:
            address = IPv6Address(match[0])
        except ValueError:
            continue
        if any(c.isdigit() for c in match[0]):
            found.append(Found(*match.span(), "ip", address.compressed))
    return found
