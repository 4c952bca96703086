"""What varies in an operation log becomes a placeholder, so that equal events have equal templates.

Invariant: two lines that differ in a status or an error code, in a word, or in whether anything
failed at all (`errors=0`) keep different templates: to merge two different things is worse than to
keep two equal ones apart. Numbers, sizes, times, ids, hashes, addresses, users, hosts, files and
masked values vary, and so do lists of them in their length. A template depends on its line alone.
"""

from __future__ import annotations

import re
from functools import lru_cache

from job.fold.codes import METHODS, codes, telling
from job.fold.instances import VARIES, without_instances
from job.mask.masking import ALIAS
from job.words import holds_any, lowered

_MEASURED = frozenset(("phone", "card", "id_card"))
"""Kinds of alias that a plain number may have been taken for."""

_NUMBER = re.compile(
    r"""
    [0-9]
    (?<! (?:east|west|orth|outh|tral)-[0-9] )   # a cloud region is a place: us-east-1
    (?<! ipv[0-9] ) (?<! /v[0-9] )              # and these are names: ipv6, /v2/orders
    [0-9]* (?: (?: [.,:/_+-] | T(?=[0-9]{2}:?[0-9]{2}) | _[A-Za-z]_ | [eE][-+]? ) [0-9]+ )*
    (?: Z (?![A-Za-z0-9])
      | [ ]? (?: (?: [KMGTP]i?B | B | [kKMG]b | [munµ]s | [smhd] ) (?![A-Za-z_])
               | (?: (?: milli | micro | nano )?(?: seconds? | secs? | s(?=/) )
                   | msecs? | millis | min(?:ute)?s? | h(?:ou)?rs? | days? ) (?![A-Za-z0-9_])
               | 毫秒 | 微秒 | 秒钟? | 分钟 | 个?小时 )
          (?: /s(?:ec)? (?![A-Za-z]) )? )?
    """,
    re.VERBOSE,
)
_MINUS = re.compile(r"(?<![A-Za-z0-9>)\]])-(?=<\*>)")
_LESS = re.compile(r"(?<=[ =:(])[<~≈](?=<\*>)")
_LIST = re.compile(
    r"(?:(?:\*{3,8}|N/A)[ ,/]{1,2}){0,20}<\*>"
    r"(?:(?:[ ]?[,:/|+;@-]{1,2}[ ]?|[ ]|\.\.)?(?:<\*>|(?<=[ ,/])(?:\*{3,8}|N/A)(?![A-Za-z])))+"
)
"""Numbers in a row, some of which may be missing (`****`)."""

_THREAD = re.compile(r"\A\[[^\]\n]{1,400}\](?= [a-z][\w$]*(?:\.[\w$]+){2,}:? )")
"""The thread before a logger's full name is where a line was written, not what happened."""

_HAS_ID = re.compile(
    r"[0-9](?:[A-Za-z]{1,20}[0-9]|[a-fA-FxX]|(?<=[a-fA-F][0-9])|[-:][A-Z]"
    r"|(?<=[A-Za-z].)[0-9]{5})|f{8}|dead"
)
_ID = re.compile(
    r"""
    (?<![A-Za-z0-9])
    (?: [0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}
      | [0-9][xX][0-9a-fA-F]{1,64}
      | (?=[a-fA-F:-]{0,47}[0-9]) (?=[0-9:-]{0,47}[a-fA-F])
        [0-9a-fA-F]{2,8} (?: [:-] [0-9a-fA-F]{2,8} ){2,15}
      | (?=[a-f]{0,64}[0-9]) (?=[0-9]{0,64}[a-f]) [0-9a-f]{6,128}
      | (?=[A-F]{0,64}[0-9]) (?=[0-9]{0,64}[A-F]) [0-9A-F]{8,128}
      | [a-f]{8} | [A-F]{8} | [0-9A-F]{1,8}/[0-9A-F]{6,8}
      | (?<=[-=:/\#{(@]) (?=[a-f]{0,6}[0-9]) (?=[0-9]{0,6}[a-f]) [0-9a-f]{5}
      | (?<=@) (?=[a-f]{0,6}[0-9]) [0-9a-f]{1,4} (?![.:/])
      | [a-z][0-9AB][0-9A-Za-z]{6}[0-9]{6}
      | (?=[A-Za-z0-9]{6}) (?: (?>[A-Z]{1,40}(?![A-Za-z])|[A-Za-z]{1,3}) [0-9]{1,40}+ ){2,40}
        (?: [A-Z]{1,40} | [A-Za-z]{1,3} )?
      | (?=[A-Za-z0-9]{6})
        (?: [0-9]{1,40}+ (?>[A-Z]{1,40}(?![A-Za-z])|[A-Za-z]{1,3}) ){2,40} [0-9]{0,40}
      | [A-Z]{1,2}[0-9]{1,3} (?: [:-] [A-Z]{1,2} [0-9]{0,3} ){1,8}
      | (?<=_) [A-Z][0-9]{1,3}
    )
    (?![A-Za-z0-9])
    """,
    re.VERBOSE,
)
"""UUIDs, hexadecimal numbers (short ones behind a joint: `pod=web-d0b40`, `Token{a64f9`), hardware
addresses, sendmail's queue ids, places in a rack (`R30-M0-L1-U18`), and runs in which short letter
and digit groups alternate (atomic, as there are two ways to read capitals). A longer lower-case
word inside (`Log4j2Config`) makes it a name, and a name stays."""

_REPLICA = "[bcdfghjklmnpqrstvwxz0-9]"
_POD = re.compile(rf"-(?=[a-z-]{{0,14}}[0-9]){_REPLICA}{{8,10}}-{_REPLICA}{{5}}(?![A-Za-z0-9-])")
"""What a deployment's replica set and pod add to its name; their alphabet has no
vowels."""
_ASSEMBLY = re.compile(r"[\w.-]{1,200}(?:~[\w.-]{0,64}){3,4}")
"""A Windows package: name~key~architecture~language~version."""
_AXIS = re.compile(r"(?<![A-Za-z0-9])[XYZxyz][+-](?= |\Z)")
"""The direction of a link in a torus."""
_DISK = re.compile(r"(?<![A-Za-z0-9])(?:(?:s|xv)d[a-j]|[hv]d[abc])[0-9]{0,3}(?![A-Za-z0-9])")
_PRINT = re.compile(r"(?<=SHA[0-9]{3}:)[A-Za-z0-9+/]{16,64}={0,2}")
_IN_KEY = re.compile(r"(?<=\)=\()[^()\n]{1,400}(?=\))")
_SQL = re.compile(r"'(?:[^'\\\n]|''|\\.){0,4000}'")
_SQL_VERBS = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "select ", "insert ", "update ")

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


_LONG_ID = re.compile(
    r"(?<![A-Za-z0-9/_.\\-])(?:(?=[a-f]{0,64}[0-9])(?=[0-9]{0,64}[a-f])[0-9a-f]{12,128}"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?![A-Za-z0-9/_.-])"
)
"""An id that is surely one and stands alone."""
_REMEMBERED = 500
"""Characters of a line whose template is remembered."""
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)


def template(text: str) -> str:
    """`text` with `<*>` for what varies; other aliases keep their kind (`<email>`)."""
    if "<" in text:
        text = ALIAS.sub(_alias, text)
    if text[:1] == "[":
        text = _THREAD.sub("[<*>]", text)
    text = _LONG_ID.sub(VARIES, text)
    if len(text) > _REMEMBERED or "://" in text or holds_any(text, METHODS):
        return template_of(text)
    # A table for bytes is twenty times as fast as one for text.
    encoded = text.encode("utf-8", "surrogatepass").translate(_ZEROS)
    zeroed = encoded.decode("utf-8", "surrogatepass")
    for start, end in _telling(zeroed):
        zeroed = zeroed[:start] + text[start:end] + zeroed[end:]
    return _template_of(zeroed)


def template_of(text: str) -> str:
    """The template of a text without aliases: what `template` remembers for all texts that differ
    only in digits which decide nothing."""
    text = without_instances(text, lowered(text))
    if "~" in text:
        text = _ASSEMBLY.sub(VARIES, text)
    if "SHA" in text:
        text = _PRINT.sub(VARIES, text)
    if ")=(" in text:
        text = _IN_KEY.sub(VARIES, text)
    if "'" in text and holds_any(text, _SQL_VERBS):
        text = _SQL.sub(VARIES, text)
    parts: list[str] = []
    done = 0
    for start, end in codes(text):
        if start >= done:
            parts += (_without_varying(text[done:start]), text[start:end])
            done = end
    parts.append(_without_varying(text[done:]))
    return _joined("".join(parts))


_telling = lru_cache(maxsize=8192)(telling)
_template_of = lru_cache(maxsize=8192)(template_of)


def _alias(match: re.Match[str]) -> str:
    return VARIES if match[1] in _MEASURED else f"<{match[1]}>"


def _without_varying(text: str) -> str:
    if "-" in text:
        text = _POD.sub("-" + VARIES, text)
    if _HAS_ID.search(text):
        text = _ID.sub(VARIES, text)
    if "." in text and _HAS_MACHINE.search(text):
        text = _MACHINE.sub(VARIES + r"\1", text)
    if "+ " in text or "- " in text:
        text = _AXIS.sub(VARIES, text)
    if "sd" in text or "hd" in text or "vd" in text:
        text = _DISK.sub(VARIES, text)
    return _NUMBER.sub(VARIES, text)


def _joined(text: str) -> str:
    """Signs before numbers are part of them, and a list of them is one."""
    if "<ip>" in text:
        text = text.replace("<ip>", VARIES)
    if "-<*>" in text:
        text = _MINUS.sub("", text)
    if "<<*>" in text or "~<*>" in text:
        text = _LESS.sub("", text)
    return _LIST.sub(VARIES, text)
