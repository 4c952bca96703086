"""Finding credentials in a text: passwords, tokens, keys, codes, by their form or by their name.

Invariant: only the value is found, never its name, so that a reader still sees what was there.
A value that stands under a name must look like one: placeholders (`<token>`, `${TOKEN}`, `****`),
words of a sentence ("password: must contain"), counts (`max_token=512`) and code
(`token=get_token()`) are not credentials.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from job.mask.one_time import one_time
from job.mask.private import Found
from job.mask.shadow import Shadow
from job.mask.token_forms import Span, by_form, is_random
from job.words import listed

PASSWORDS = listed("password, passwd, passphrase, passcode")
PASSWORDS_ZH = listed("密码, 口令, 密碼")
SECRETS = listed("token, secret, credential, sessid, key, signature")
SECRETS_ZH = listed("令牌, 密钥, 凭证, 密鑰")
_NAMES = frozenset(SECRETS + SECRETS_ZH + PASSWORDS_ZH)
_IN_COMMAND = re.compile(
    r"(?<!\S)--?(?:password|passwd|pass|pwd|passphrase)[ ]([^\s<$\"'-][^\s\"']{2,200})"
)
_FOR_TOOLS = re.compile(
    r"curl\b[^\n]{0,200}?\s(?:-u|--user|--proxy-user)[ =]?[\"']?[^\s:\"']{1,64}:([^\s\"']{1,200})"
    r"|mysql(?:dump|admin)?\b[^\n]{0,200}?\s-p([^\s\"'-][^\s\"']{2,200})"
)
"""How commands are given a password: `--password x`, `curl -u user:x`, `mysql -px`."""
_SHORT = re.compile(r"p(?<![a-z]p)(?:ass|w|sw)(?=\\{0,7}[\"']?\s?[:=])")
"""Names for a password that are parts of other words."""
_WHICH_KEY = re.compile(
    r"(?:api|access|secret|private|app|auth|account|encryption|signing|master|service|license"
    r"|client|subscription|shared|storage|consumer)[_ -]?\Z",
    re.IGNORECASE,
)

_LINK = re.compile(
    r"s?(?:_?(?:confirm(?:ation)?|again|repeat|new|old|hash|v?[0-9]))?"
    r"(?: (?P<sign> (?:\\{0,7}[\"'\])）>]|[^\S\n]{0,3}[（(][^()（）\n]{0,8}[）)])?"
    r"      \s{0,3} (?: [:=：]>? | => | := ) \s{0,3} | > )"
    r"  | (?P<pair> \\{0,7}[\"']? (?:,\s?|\s) \\{0,7}[\"']?"
    r"      [\w.]{0,40}value \\{0,7}[\"']? \s?[:=]\s? )"
    r"  | (?P<said> \s(?:is|was|are|to)(?:\s(?:now|set\sto|changed\sto|reset\sto))?[:：]?\s{1,3}"
    r"      | \s? (?: (?:已经?|刚)? (?:就|改|设|设置|重置|修改|更新|换|变)? (?:为|成|是|了) ){1,2}"
    r"        [:：]?\s{0,3} )"
    r"  | (?P<next> [^\S\n]{1,3} | (?<=[\u4e00-\u9fff]) ) )",
    re.IGNORECASE | re.VERBOSE,
)
"""What joins a name and its value: a sign (`=`, `": "`, `>` of XML), a name-and-value pair
(`name=password value=...`), words that say so, or nothing."""
_RUN = r"[^\s,;\"'<>&|(){}\[\]，。；、（）【】“”\\]"
_LITERAL = re.compile(
    r"\"(?P<double>(?:[^\"\\\n]|\\.){1,4000})(?:\"|\\?\Z)"
    r"|\\{1,7}\"(?P<nested>[^\"\\\n]{1,4000})(?:\\{1,7}\"|\\*\Z)"
    r"|'(?P<single>(?:[^'\\\n]|\\.){1,4000})(?:'|\\?\Z)"
    r"|\\{1,7}'(?P<inner>[^'\\\n]{1,4000})(?:\\{1,7}'|\\*\Z)"
    rf"|(?P<bare>{_RUN}{{3,1000}})"
)
_REST = re.compile(f"{_RUN}*")
_PASSWORD_GOES_ON = re.compile(
    rf"(?:(?:[&|,;(){{}}\[\]]|\\(?![nrtu\"'\\]))(?![\w.-]{{1,40}}[=:]){_RUN}{{1,400}}){{1,20}}"
)
"""A password may hold what ends other values, unless the next field begins there."""
_PLACEHOLDER = re.compile(
    r"<|\$\{|\$\(|(?-i:\$[A-Z][A-Z0-9_]{2,}\b)|%\(|%[sdrv]\Z|\{|\[|/[\w.-]+/|[*xX.#•-]+\Z|your[_ -]"
    r"|(?:self|os|config|settings|process|env|request|req|args|this)\.",
    re.IGNORECASE,
)
_WORDS = re.compile(
    "null|none|nil|true|false|undefined|required|invalid|incorrect|expire[sd]|wrong|missing|empty|reset"
    "|changed?|must|should|cannot|will|was|were|this|that|with|your|please|redacted|masked|hidden"
    "|string|optional|default|unknown|failed|error|denied|accepted|valid|sent|used|password|passwd"
    "|token|secret|text|type|input|does|have|been|from|when|after|before|authentication|verification",
    re.IGNORECASE,
)
_SAYS_HOW_IT_IS = re.compile(
    "correct|right|weak|strong|long|short|safe|good|fine|okay|same|unique|gone|ready|random|public"
    "|case-sensitive|different|still|really|just|also|about|being|longer|shorter|stronger|weaker"
    r"|\w+(?:ed|ing|able|ible|ful|ive|ent|ant|al|ly|less|ary|ous)",
    re.IGNORECASE,
)
"""Words after "my password is" that are no password."""
_ALGORITHM = re.compile(
    r"(?:sha|md|base|utf|aes|rsa|oauth|argon|pbkdf|scrypt|bcrypt|ntlm|tls|ssl|http|ipv)-?[0-9]\w*"
    r"|[0-9]+(?:th|st|nd|rd|ms|kb|mb|min|x|px|bit|char(?:s|acters)?)",
    re.IGNORECASE,
)
_UNITS = re.compile(r"\s?(?:[位次个天分秒条元年月日时]|小时|毫秒|到|至|[-~～][0-9])")
_COUNTS = re.compile(r"[0-9.,/:%-]+")
_ENDS_A_CLAUSE = re.compile(r"\s*(?:\Z|\n|[,;.!?)\]}\"'，。；！？）】])")
_CALL = re.compile(r"[A-Za-z_][\w.]*[(\[]")


class _Value(NamedTuple):
    """What stands under a name; `link`: how it is joined to it, by the names of `_LINK`."""

    text: str
    start: int
    end: int
    link: str
    quoted: bool


def credentials(shadow: Shadow) -> list[Found]:
    """Every credential of the text, in no particular order; spans may overlap."""
    text, lower, hints = shadow
    spans = by_form(shadow)
    spans += one_time(shadow)
    if "pass" in hints:
        for name in PASSWORDS:
            if name in lower:
                spans += _under(name, text, lower, password=True)
    if "pw" in hints:
        spans += _under("pwd", text, lower, password=True)
    if "pass" in hints or "pw" in hints:
        spans += _under_short_names(text, lower)
        spans += (match.span(1) for match in _IN_COMMAND.finditer(text))
    for name in hints.intersection(_NAMES):
        spans += _under(name, text, lower, password=name in PASSWORDS_ZH)
    if "curl" in hints or "mysql" in hints:
        spans += (match.span(match.lastindex or 0) for match in _FOR_TOOLS.finditer(text))
    return [Found(start, end, "secret", text[start:end]) for start, end in spans]


def _under_short_names(text: str, lower: str) -> Iterator[Span]:
    for name in _SHORT.finditer(lower):
        value = _value_at(text, name.end(), password=True)
        if value and (value.quoted or is_random(value.text)) and not value.text.isdigit():
            yield value.start, value.end


def _under(name: str, text: str, lower: str, *, password: bool) -> Iterator[Span]:
    at = lower.find(name)
    while at >= 0:
        after = at + len(name)
        if text[at - 1 : at] != ":" and (
            name != "key" or _WHICH_KEY.search(text, max(0, at - 16), at)
        ):
            value = _value_at(text, after, password=password)
            if value is not None and _is_one(name, value, text, password=password):
                after = value.end
                if len(value.text) >= 1000 and (rest := _REST.match(text, after)):
                    after = rest.end()
                yield value.start, after
        at = lower.find(name, after)


def _value_at(text: str, at: int, *, password: bool) -> _Value | None:
    """What stands behind a name that ends at `at`, if anything does."""
    link = _LINK.match(text, at)
    if link is None:
        return None
    match = _LITERAL.match(text, link.end())
    if match is None:
        return None
    group = match.lastgroup or "bare"
    start, end = match.span(group)
    if group == "bare":
        if password and link.lastgroup in ("sign", "pair"):
            more = _PASSWORD_GOES_ON.match(text, end)
            end = more.end() if more else end
        end = start + len(text[start:end].rstrip(".!?:："))
    return _Value(text[start:end], start, end, link.lastgroup or "", group != "bare")


def _is_one(name: str, found: _Value, text: str, *, password: bool) -> bool:
    value = found.text
    if not value or _WORDS.fullmatch(value.rstrip(".!?:：")) or _PLACEHOLDER.match(value):
        return False
    if not found.quoted and (
        not value[0].isascii()
        or text[found.end : found.end + 1] in ("(", "[")
        or _CALL.match(value)
    ):
        return False
    if found.link == "next":
        return password and _stands_next(name, found, text)
    if found.link == "said":
        return _is_said(found, text, password=password)
    if password:
        plain = value.isalpha() and value.islower() and text[found.start - 1].isspace()
        return found.quoted or not plain or bool(_ENDS_A_CLAUSE.match(text, found.end))
    if name == "signature":
        return len(value) >= 20 and "." not in value and " " not in value and is_random(value)
    if _COUNTS.fullmatch(value):
        return value.isdigit() and len(value) >= 10
    signed = found.link == "pair" or "=" in text[found.start - 3 : found.start]
    return len(value) >= 6 and " " not in value and (is_random(value) or signed)


def _stands_next(name: str, found: _Value, text: str) -> bool:
    """`password hunter2`, 密码abc123: letters and digits, or in Chinese six digits and more."""
    value = found.text
    if not value.isascii() or " " in value or _ALGORITHM.fullmatch(value):
        return False
    digits = any(c.isdigit() for c in value)
    if digits and len(value) >= 6 and any(c.isalpha() for c in value):
        return not _CALL.match(value) and "=" not in value and "/" not in value
    named_in_chinese = not name.isascii()
    return (
        named_in_chinese
        and value.isdigit()
        and 6 <= len(value) <= 16
        and not _UNITS.match(text, found.end)
    )


def _is_said(found: _Value, text: str, *, password: bool) -> bool:
    """`my password is hunter2`, 密码是abc123."""
    value = found.text
    if len(value) < 4 or not value.isascii():
        return False
    if any(c.isdigit() for c in value):
        return not _UNITS.match(text, found.end) and not _ALGORITHM.fullmatch(value)
    if not password or _SAYS_HOW_IT_IS.fullmatch(value):
        return False
    return len(value) >= 6 and bool(_ENDS_A_CLAUSE.match(text, found.end))
