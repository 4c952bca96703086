"""Finding credentials in a text: passwords, tokens, keys, by their own form or by their name.

Invariant: only the value is found, never its name, so that a reader still sees what was there.
A value that stands under a name must look like one: placeholders (`<token>`, `${TOKEN}`, `****`),
words of a sentence ("password: must contain"), counts (`max_token=512`) and code
(`token=get_token()`) are not credentials.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from job.private import Found
from job.words import holds_any, listed, lowered

_FORM_HINTS = listed("sk-, glpat-, xox, pypi-, eyJ, AKIA, ASIA, LTAI, AKID, AIza, SG.")
_JOINED = re.compile("_(?=[0-9]{0,20}[A-Za-z])[A-Za-z0-9]{10}")
"""What every form has, looked for before the costly search: its first letters, or `_` and ten
letters and digits (`ghp_`, `sk_live_`)."""

_FORM = re.compile(
    r"""
    [srALgxehnpS] (?<! [A-Za-z0-9_] . )
    (?: (?<=s)k-(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{16,}
      | (?<=[sr])k_(?:live|test)_[A-Za-z0-9]{10,}
      | (?<=A)(?:KIA|SIA)[0-9A-Z]{16}
      | (?<=L)TAI[0-9A-Za-z]{12,26}
      | (?<=A)KID[0-9A-Za-z]{28,44}
      | (?<=g)h[pousr]_[A-Za-z0-9]{30,}
      | (?<=g)ithub_pat_[A-Za-z0-9_]{30,}
      | (?<=g)lpat-[A-Za-z0-9_-]{20,}
      | (?<=x)ox[abeoprs]-[A-Za-z0-9-]{10,}
      | (?<=A)Iza[0-9A-Za-z_-]{35}
      | (?<=e)yJ[A-Za-z0-9_-]{8,600}\.[A-Za-z0-9_-]{8,6000}\.[A-Za-z0-9_-]{4,1000}
      | (?<=h)f_[A-Za-z0-9]{30,}
      | (?<=n)pm_[A-Za-z0-9]{36}
      | (?<=p)ypi-[A-Za-z0-9_-]{40,}
      | (?<=S)G\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
    )
    (?! [A-Za-z0-9_] )
    """,
    re.VERBOSE,
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY-----"
    r"(?:.*?-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY-----|.*)",
    re.DOTALL,
)
_IN_URL = re.compile(r"://[^/\s:@<]{0,64}:([^/\s@<]{1,128})@")
_BEARER = re.compile(r"bearer[ :=]{1,3}([A-Za-z0-9._~+/=-]{8,})", re.IGNORECASE)
_BASIC = re.compile(
    r"authorization[\"']?\s?[:=]\s?[\"']?basic ([A-Za-z0-9+/]{6,}={0,2})", re.IGNORECASE
)
_COOKIE = re.compile(r"cookie[\"']?\s?[:=]\s?[\"']?([^\s<\"'][^\n\"']*)", re.IGNORECASE)

_PASSWORDS = listed("password, passwd, passphrase, passcode, pwd")
_PASSWORDS_ZH = listed("密码, 口令, 密碼")
_SECRETS = listed("token, secret, credential, jsessionid, phpsessid, key")
_SECRETS_ZH = listed("令牌, 密钥, 凭证")
_WHICH_KEY = re.compile(
    r"(?:api|access|secret|private|app|auth|account|encryption|signing|master|service)[_ -]?\Z",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"\\?[\"'\]]?\s{0,3}(?P<sep>[:=：]|=>|(?<=\s)is\s|是|为)\s{0,3}\\?"
    r"(?:\"(?P<double>[^\"\\\n]{1,400})\\?\"|'(?P<single>[^'\\\n]{1,400})\\?'"
    r"|(?P<bare>[^\s,;\"'<>&|(){}\[\]，。；、（）【】“”\\]{4,1000}))"
)
_PLACEHOLDER = re.compile(
    r"[<$%{*\[/]|[*xX.#-]+\Z|your[_ -]"
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
_ENDS_A_CLAUSE = re.compile(r"\s*(?:\Z|\n|[,;.!?)\]}\"'，。；！？）】])")


def credentials(text: str) -> list[Found]:
    """Every credential of the text, in no particular order; spans may overlap."""
    spans: list[tuple[int, int]] = []
    if holds_any(text, _FORM_HINTS) or _JOINED.search(text):
        spans += (match.span() for match in _FORM.finditer(text))
    if "-----BEGIN" in text:
        spans += (match.span() for match in _PRIVATE_KEY.finditer(text))
    if "://" in text and "@" in text:
        spans += (match.span(1) for match in _IN_URL.finditer(text))
    lower = lowered(text)
    if "bearer" in lower:
        spans += (m.span(1) for m in _BEARER.finditer(text) if _is_random(m[1]))
    if "basic " in lower:
        spans += (match.span(1) for match in _BASIC.finditer(text))
    if "cookie" in lower:
        spans += (match.span(1) for match in _COOKIE.finditer(text))
    for name in _PASSWORDS + _SECRETS:
        if name in lower:
            spans += _under(name, text, lower)
    if not text.isascii():
        for name in _PASSWORDS_ZH + _SECRETS_ZH:
            if name in lower:
                spans += _under(name, text, lower)
    return [Found(start, end, "secret", text[start:end]) for start, end in spans]


def _under(name: str, text: str, lower: str) -> Iterator[tuple[int, int]]:
    password = name in _PASSWORDS or name in _PASSWORDS_ZH
    at = lower.find(name)
    while at >= 0:
        after = at + len(name)
        match = _VALUE.match(text, after)
        if (
            match is not None
            and text[at - 1 : at] != ":"
            and (name != "key" or _WHICH_KEY.search(text, max(0, at - 12), at))
            and _holds_a_credential(match, password, text)
        ):
            group = next(g for g in ("double", "single", "bare") if match[g] is not None)
            end = match.end(group)
            if group == "bare":
                end = match.start(group) + len(match[group].rstrip(".!?:："))
            yield match.start(group), end
            after = end
        at = lower.find(name, after)


def _holds_a_credential(match: re.Match[str], password: bool, text: str) -> bool:
    value = match["bare"] or match["double"] or match["single"] or ""
    quoted = match["bare"] is None
    if _WORDS.fullmatch(value.rstrip(".!?:：")) or _PLACEHOLDER.match(value):
        return False
    if not quoted and (text[match.end() : match.end() + 1] in ("(", "[") or not value[0].isascii()):
        return False
    said = match["sep"] not in (":", "=", "：", "=>")
    if said:
        return len(value) >= 4 and value.isascii() and any(c.isdigit() for c in value)
    if password:
        plain = value.isalpha() and value.islower() and " " in match[0]
        return quoted or not plain or bool(_ENDS_A_CLAUSE.match(text, match.end()))
    if value.isdigit():
        return len(value) >= 10
    return len(value) >= 6 and " " not in value and (_is_random(value) or match["sep"] == "=")


def _is_random(value: str) -> bool:
    return len(value) >= 20 or any(c.isdigit() for c in value)


_NAMES_OF_FIELDS = (
    *(_PASSWORDS + _PASSWORDS_ZH + _SECRETS_ZH),
    *listed("token, secret, jsessionid, phpsessid"),
)


@lru_cache(maxsize=4096)
def names_a_credential(name: str) -> bool:
    """Whether a field of this name holds a credential: `password`, `clientSecret`, `api_key`."""
    word = "".join(c for c in name.lower() if c.isalnum())
    if word.endswith(_NAMES_OF_FIELDS):
        return True
    if word.endswith("key"):
        return bool(_WHICH_KEY.search(word[:-3]))
    return word in ("authorization", "cookie")
