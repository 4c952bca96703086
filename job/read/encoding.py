"""Which encoding bytes are in, and text from them without losing a byte.

Invariant: `decode` never fails, and `byte_length(text)` of any piece of decoded text is the number
of bytes it came from, so that a position in text gives the byte offset in the file. A byte that
does not decode travels as a lone surrogate (PEP 383) until `repair` makes it U+FFFD; in UTF-16 and
UTF-32, where code units keep their width, it becomes U+FFFD at once.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from charset_normalizer import from_bytes

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""UTF-32 before UTF-16: its little-endian mark begins with the other's."""

_DETECTABLE = ["gb18030", "big5", "cp932", "euc_jp", "cp949", "cp1251", "cp1252", "koi8_r"]
"""Encodings that logs are found in and in which the byte 0x0A is always a line feed."""

_MIN_EVIDENCE = 4
"""Bytes beyond ASCII that a detector needs; two Chinese characters. Fewer are damage, not a
language."""
_DETECTOR_BYTES = 16_384
_ESCAPED = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile(rb"[\xa1-\xfe][\xa1-\xfe]")
_HANZI_LEADS = bytes(range(0xB0, 0xF8))
_KANA_LEADS = b"\xa4\xa5"
_HANGUL_LEADS = bytes(range(0xB0, 0xC9))
_KANA_SHARE = 0.15
"""Of the pairs of EUC-JP text; Chinese text in GB 2312, which has its kana in the same places, has
next to none."""
_HANGUL_SHARE = 0.97
"""Of the letters of EUC-KR text; of Chinese text about half lie there."""
_MIN_HANGUL = 8
"""Pairs below which Chinese text lies there by chance too often."""
_LATIN_OR_CJK = re.compile(r"[\t\n\r -~\u3000-\u30ff\u4e00-\u9fff\uff00-\uffef]")


@dataclass(frozen=True, slots=True)
class Encoding:
    """`codec`: Python's name for it; `bom`: bytes of the byte order mark before the text."""

    codec: str = "utf-8"
    bom: int = 0

    @property
    def unit(self) -> int:
        """Bytes of a code unit: in one of 1 byte the file can be cut at any byte 0x0A."""
        return {"utf-16": 2, "utf-32": 4}.get(self.codec[:6], 1)

    @property
    def newline(self) -> bytes:
        return "\n".encode(self.codec)

    @property
    def errors(self) -> str:
        return "surrogateescape" if self.unit == 1 else "replace"

    def decode(self, data: bytes) -> tuple[str, bool]:
        """The text, and whether some bytes did not decode. `data` holds whole characters."""
        try:
            return data.decode(self.codec), False
        except UnicodeDecodeError:
            return data.decode(self.codec, self.errors), True

    def byte_length(self, text: str) -> int:
        """Bytes that decoded `text` stands for in the file."""
        if self.unit == 1 and text.isascii():
            return len(text)
        return len(text.encode(self.codec, self.errors))

    def holds_bad_bytes(self, text: str) -> bool:
        """Whether decoded text stands for bytes that did not decode."""
        if text.isascii():
            return False
        return bool(_ESCAPED.search(text)) if self.unit == 1 else "\ufffd" in text


UTF8 = Encoding()


def repair(text: str) -> str:
    """Decoded text with every lone surrogate as U+FFFD: valid Unicode again."""
    return _SURROGATE.sub("\ufffd", text)


def detect(sample: bytes) -> Encoding:
    """The encoding of a sample of whole lines: its BOM; UTF-8 where nearly all of it decodes; else
    GB18030, EUC-JP or EUC-KR where it reads as that; else what the detector says; else UTF-8 all
    the same."""
    for mark, codec in _BOMS:
        if sample.startswith(mark):
            return Encoding(codec, len(mark))
    if b"\0" in sample and (wide := _wide(sample)):
        return Encoding(wide)
    beyond = len(sample.translate(None, bytes(range(128))))
    text, bad = UTF8.decode(sample)
    if not bad:
        return UTF8
    undecoded = len(_ESCAPED.findall(text))
    if undecoded * 10 <= beyond or beyond < _MIN_EVIDENCE:
        return UTF8
    if two_byte := _two_byte(sample, beyond):
        return Encoding(two_byte)
    telling = b"\n".join(line for line in sample.split(b"\n") if not line.isascii())
    best = from_bytes(telling[:_DETECTOR_BYTES], cp_isolation=_DETECTABLE).best()
    return Encoding(best.encoding) if best else UTF8


def _wide(sample: bytes) -> str | None:
    """UTF-16 without a BOM: in one byte order nearly all of it is ASCII and CJK, lines included."""
    for codec in ("utf-16-le", "utf-16-be"):
        text = sample[: len(sample) // 2 * 2].decode(codec, "replace")
        known = len(_LATIN_OR_CJK.findall(text))
        if known >= 0.9 * len(text) and ("\n" in text or b"\n" not in sample):
            return codec
    return None


def _two_byte(sample: bytes, beyond: int) -> str | None:
    """GB18030, EUC-JP or EUC-KR where nearly everything beyond ASCII reads as it. Each has its
    characters in the same two-byte places, so what tells them apart is which places are used."""
    pairs = b"".join(_PAIR.findall(sample))[::2]
    if not pairs or 2 * len(pairs) < 0.7 * beyond:
        return None
    kana = len(pairs) - len(pairs.translate(None, _KANA_LEADS))
    hangul = len(pairs) - len(pairs.translate(None, _HANGUL_LEADS))
    hanzi = len(pairs) - len(pairs.translate(None, _HANZI_LEADS))
    if kana > _KANA_SHARE * len(pairs):
        codec = "euc_jp"
    elif len(pairs) >= _MIN_HANGUL and hangul > _HANGUL_SHARE * hanzi:
        codec = "cp949"
    elif 2 * hanzi < 0.7 * beyond:
        return None
    else:
        codec = "gb18030"
    text = sample.decode(codec, "surrogateescape")
    return codec if len(_ESCAPED.findall(text)) * 10 <= beyond else None
