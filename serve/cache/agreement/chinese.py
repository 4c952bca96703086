"""The form of a Chinese question: its characters, without manners and final punctuation.

Invariant: only whole phrases at either end are taken off, and only those listed here; the width of
signs and spaces between Chinese and Latin letters are made one; no character inside is dropped or
changed.
"""

from __future__ import annotations

import re

HAN = "\u3400-\u9fff"
_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
_SPACE = re.compile(rf"(?<=[{HAN}]) (?=[A-Za-z0-9])|(?<=[A-Za-z0-9]) (?=[{HAN}])")
_ASKED = "怎么|怎样|如何|什么|谁|哪|为何|为啥|何时|多少"
_ASKS = re.compile(
    rf"{_ASKED}|多[久远长高大重]|是不是|能不能|有没有|可不可以|要不要|是否|能否|几[点号岁]|吗$|吗[?]"
)
"""What makes a sentence a question, also without its mark."""
_GREETS = re.compile(r"(?:你好|您好)[,!。] ?")
_MAY_I_ASK = re.compile(r"(?:麻烦问一下|请教一下|请问一下|请问)(?:,| )?(?![候的们])")
_TELL_ME = re.compile(
    rf"(?:请告诉我|告诉我|我想知道|我想问一下|我想问|想问一下|想知道)"
    rf"(?:,|(?={_ASKED}))"
)
"""What may stand before a question word; with another word behind it belongs to that (告诉我妈)."""
_PLEASE = re.compile("请(?=帮我|给我|列出|翻译成|(?:解释|总结|概括|说明)(?![人员权费书]))")
_THANKS = re.compile("(?:[,。!]|(?<=[?])) ?(?:谢谢|谢谢你|谢谢您|多谢)[!。]?$")
_END = re.compile("(怎么办|什么|在哪里|多少)呢$")
_ABOUT_SIGNS = re.compile("[全半]角|标点|空格|符号")
_LEAST = 2
"""Characters that a question has without its manners."""


def form(text: str, whole: bool) -> str:
    """The characters of `text`. `whole`: it goes on to the end of the question."""
    if _ABOUT_SIGNS.search(text):
        return text
    said = _SPACE.sub("", text.translate(_WIDTH)).lstrip(" ")
    if whole:
        said = _THANKS.sub("", said.rstrip(" "))
        said = _without_end(said)
    said = _GREETS.sub("", said, count=1) if _GREETS.match(said) else said
    for frame in (_MAY_I_ASK, _TELL_ME, _PLEASE):
        found = frame.match(said)
        if found and len(said) - found.end() >= _LEAST:
            said = said[found.end() :]
    return said


def _without_end(said: str) -> str:
    """`said` without the mark that ends it: of a question "?", else "。". Another mark stays, since
    it makes it another sentence."""
    bare = said[:-1].rstrip(" ")
    if _ASKS.search(said):
        if said.endswith("?") and bare[-1:].isalnum():
            said = bare
        return _END.sub(r"\1", said)
    return bare if said.endswith(("。", ".")) and "\u3400" <= bare[-1:] <= "\u9fff" else said
