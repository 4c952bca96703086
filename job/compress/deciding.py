"""The words that decide what a rule says: not, at least, unless, only, or. Pure.

Invariant: the same meaning has one name in both languages and in every notation (at least, >=,
至少, 以上), so a rule may be said in other words and still be held to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from job.words import listed

COUNTED = ("not", "at least", "at most", "more", "less", "only", "unless", "except")
"""Must be there as often as in the rule; the others, whether or not they are."""
BOUNDS = {"at least": "≥", "at most": "≤", "more": ">", "less": "<"}
"""What belongs to a number, and its sign."""
MAY_GO = ("all",)
"""May be left out, but not added: rules speak of everything of their kind anyway."""

_WORDS: Mapping[str, tuple[str, ...]] = {
    "at least": listed(
        "at least, no less than, not less than, no fewer than, not fewer than, no lower than",
        "no earlier than, not before, or more, or above, or longer, or higher, and above",
        "and up, minimum, minimum of, a minimum of",
        "至少, 最少, 起码, 不少于, 不低于, 不小于, 不早于, 不短于, 及以上, 或以上, 以上, 下限",
    ),
    "at most": listed(
        "at most, no more than, not more than, no later than, not later than, no longer than",
        "not exceed, not exceeding, does not exceed, do not exceed, or less, or fewer, or below",
        "or shorter, or lower, up to, within, maximum, maximum of, a maximum of",
        "至多, 最多, 不超过, 不超出, 不多于, 不大于, 不高于, 不晚于, 不长于, 及以下, 或以下, 以下",
        "以内, 之内, 上限",
    ),
    "more": listed(
        "more than, greater than, larger than, longer than, higher than, later than, exceed",
        "exceeds, exceeded, exceeding, over #, above #, beyond #, older than",
        "超过, 超出, 大于, 多于, 高于, 长于, 晚于, 逾",
    ),
    "less": listed(
        "less than, fewer than, smaller than, shorter than, lower than, earlier than, under #",
        "below #, younger than, 少于, 小于, 低于, 短于, 早于, 不足, 不到, 未满",
    ),
    "only": listed("only, solely, exclusively, nothing but, 仅仅, 仅限, 仅, 只有, 只在, 只, 唯一"),
    "unless": listed("unless, 除非"),
    "except": listed(
        "except, except for, excepting, exception, exceptions, excluding, other than, apart from",
        "aside from, with the exception of, save for, 除了, 除外, 除, 例外",
    ),
    "ignore": listed(
        "ignore, ignores, ignored, ignoring, skip, skips, skipped, skipping, disregard",
        "disregarded, omit, omitted, leave out, left out, exclude, excludes, excluded",
        "忽略, 跳过, 略过, 无视, 排除",
    ),
    "even": listed(
        "even if, even when, even though, even where, regardless, regardless of, whether or not",
        "no matter, 即使, 即便, 哪怕, 就算, 无论, 不论, 不管",
    ),
    "not all": listed(
        "not all, not every, not each, not always, not any, not necessarily",
        "并非所有, 不是所有, 不一定, 未必, 不全是, 不都",
    ),
    "all": listed(
        "all, every, each, any, always, whatever, whenever, everything, everyone, wherever",
        "所有, 全部, 任何, 一律, 每次, 每个, 每条, 每当, 总是, 始终, 凡是, 凡, 均",
    ),
    "some": listed(
        "some, sometimes, often, usually, mostly, typically, rarely, seldom, occasionally, partly",
        "部分, 有些, 有的, 有时, 通常, 大多, 多数, 偶尔, 很少, 往往",
    ),
    "may": listed("may, might, could, can, optional, optionally, 可以, 可能, 允许"),
    "or": listed("or, either, 或者, 或是, 或, 还是"),
    "before": listed(
        "before, prior to, until, till, unlike before, 之前, 以前, 前, 直到, 直至",
    ),
    "after": listed("after, afterwards, since, 之后, 以后, 后, 自从"),
    "during": listed("during, while, 期间"),
    "different": listed("different, differ, differs, differently, 不同, 不一样, 不一致"),
    "same": listed("same, identical, equal, 相同, 同样, 同一, 一致"),
    "failed": listed("fail, fails, failed, failing, failure, failures, 失败"),
    "worked": listed("succeed, succeeds, succeeded, success, successful, successfully, 成功"),
    "rising": listed(
        "increase, increases, increased, rise, rises, rising, grow, grows, 增加, 上升"
    ),
    "falling": listed(
        "decrease, decreases, decreased, decline, declines, falls, drops, 减少, 下降, 降低"
    ),
    "refused": listed("refuse, refuses, refused, reject, rejects, rejected, denied, deny, 拒绝"),
    "inside": listed("internal, inside, 内部"),
    "outside": listed("external, outside, 外部"),
    "first": listed("first, 首次, 第一次, 首个"),
    "last": listed("last, 最后, 末次"),
    "not": listed(
        "not, no, never, none, nothing, nobody, nowhere, neither, nor, without, cannot, non",
        "forbidden, prohibited, lack, lacks, lacking",
        "禁止, 严禁, 切勿, 不, 没有, 没, 無, 无, 未, 勿, 莫, 非, 别, 并非, 沒, 毫无",
    ),
}
_SIGNS: Mapping[str, str] = {
    ">=": "at least",
    "≥": "at least",
    "=>": "at least",
    "<=": "at most",
    "≤": "at most",
    ">": "more",
    "<": "less",
}
_ALIKE = listed(
    "非常, 特别, 区别, 分别, 类别, 级别, 识别, 个别, 差别, 性别, 告别, 辨别, 判别, 别名, 别处",
    "别人, 未来, 不过, 不断, 不久, 不仅, 不但, 只要, 只是, 无线, 非法, 非空, 均值, 平均, 均衡",
    "或许, 删除, 清除, 移除, 解除, 消除, 扣除, 除以, 尽可能, 没收",
    "前端, 前台, 前缀, 前提, 前往, 前面, 前者, 前景, 前期, 前后, 此前, 目前, 当前, 提前",
    "后端, 后台, 后缀, 后续, 后面, 后者, 后果, 后来, 后期, 然后, 售后, 今后, 先后, 背后, 落后",
    "延后, 滞后, not only, no doubt, at all",
)
"""Words that hold a deciding one and do not decide."""


def _alternatives() -> tuple[re.Pattern[str], Mapping[str, str]]:
    names: dict[str, str] = dict.fromkeys(_ALIKE, "")
    for name, words in _WORDS.items():
        for word in words:
            names.setdefault(word, name)
    names |= _SIGNS
    longest_first = sorted(names, key=len, reverse=True)
    english = [word for word in longest_first if "a" <= word[0] <= "z"]
    others = [word for word in longest_first if word not in english]
    # What they can begin with, first: most places of a text begin none.
    parts = [
        rf"\b(?=[a-z])(?:\w+n['’]t\b|{'|'.join(map(_expression, english))})",
        f"(?=[{''.join(sorted({word[0] for word in others}))}])"
        f"(?:{'|'.join(map(re.escape, others))})",
    ]
    # By ASCII a word of English ends where Chinese begins.
    return re.compile("|".join(parts), re.ASCII), names


def _expression(word: str) -> str:
    expression = re.escape(word.removesuffix(" #")).replace(r"\ ", r"\s+")
    return rf"{expression}\b" + (r"(?=\s*[$¥€£]?\s*\d)" if word.endswith("#") else "")


_PATTERN, _NAMES = _alternatives()


def deciding(text: str) -> list[tuple[str, re.Match[str]]]:
    """The deciding words of `text` (in lower case, numbers as digits), each with its meaning."""
    found = []
    for match in _PATTERN.finditer(text):
        name = _meaning(" ".join(match[0].split()))
        if name:
            found.append((name, match))
    return found


def _meaning(word: str) -> str:
    if word.endswith(("n't", "n’t")):
        return "not"
    return _NAMES[word] if word in _NAMES else _NAMES[f"{word} #"]
