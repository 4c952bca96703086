"""A text -> the tier of model that it needs, and why. Pure.

Invariant: the tier depends on the text alone: the same text has the same tier everywhere. Only
what a text asks for counts. A wish for a certain model, or that a question calls itself hard, has
no force; neither has what stands in lines that a machine wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

Tier = Literal["fast", "balanced", "powerful"]
Reason = Literal[
    "plain",
    "length",
    "task",
    "reasoning",
    "proof",
    "theory",
    "code",
    "structure",
    "questions",
    "dialogue",
]
"""What weighed most: nothing did, the length, an ordinary task, words of reasoning (compare,
design, ...), a proof or derivation, mathematics, code or a stack trace, lists and tables, several
questions, a long exchange."""

TIERS: tuple[Tier, ...] = get_args(Tier)
"""From the cheapest to the most powerful."""
BALANCED_POINTS = 2
POWERFUL_POINTS = 5
"""Points from which a text goes to each tier: one ordinary task is 2, one word of reasoning 3, so
two of them, or one with code or mathematics, make a text hard; a proof is so by itself."""
LOOKED_AT = 4_000
"""Characters that are judged at the start of a text and at its end: what is asked stands there."""
_LINES_KEPT = 256
"""Lines whose words are remembered: at most 8 MB, since none is longer than twice LOOKED_AT."""
FOLLOW_UP_WORDS = 6
"""A last message of fewer words ("and why?", "go on") is judged with the one before."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a text goes: the tier and what weighed most in it."""

    tier: Tier
    reason: Reason


class _Terms:
    """Words and phrases, in lower case, that say something about a task: `first` points for one,
    `further` for each different one after it, `most` together. A term with a space or with Chinese
    characters counts wherever it stands, others as words."""

    def __init__(self, terms: str, chinese: str, first: int, further: int, most: int) -> None:
        english = [term.strip() for term in terms.split(",")]
        self._words = frozenset(term for term in english if " " not in term)
        self._phrases = tuple(term for term in english if " " in term)
        self._chinese = tuple(chinese.split())
        self._first, self._further, self._most = first, further, most

    def points(self, text: str, words: Set[str], chinese: bool) -> int:
        """For `text` in lower case and the words in it. `chinese`: whether it has any."""
        # Lists: a generator would take half as long again, and every request is routed.
        found = len(self._words & words) + sum([phrase in text for phrase in self._phrases])
        if chinese:
            found += sum([term in text for term in self._chinese])
        return min(self._most, self._first + (found - 1) * self._further) if found else 0


_TASK = _Terms(
    "explain, why, describe, discuss, summarise, summarize, summary, write, draft, rewrite"
    ", rephrase, compose, suggest, plan, implement, develop, create, generate, solve, imagine"
    ", pretend, script, how does, how do i, how do we, how do they, how can, how could, how should"
    ", how would, how to, how might, what if, what are the, what are some, what factors, what would"
    ", what happens, what makes, should we, should i, is it more, is it better, difference between"
    ", differences between, pros and cons, list the, list all, list some, give me five, give me ten"
    ", translate this, turn this, turn these, convert this, convert these, regular expression",
    "解释 说明 为什么 为何 怎么 怎样 如何 概括 总结 摘要 介绍 描述 谈谈 写一 写出 写成 给出 计划"
    " 拟一 撰写 编写 生成 润色 改写 区别 优点 缺点 哪些 建议 影响 什么意思 想象 假设 如果 列出 制定"
    " 翻译下面 翻译这段 想五个 想几个 想十个 想三个 是否应该 应不应该",
    2,
    1,
    3,
)
_REASONING = _Terms(
    "compare, comparison, design, analyse, analyze, analysis, trade-off, trade-offs, tradeoffs"
    ", evaluate, assess, justify, argue, argument, arguments, weigh, recommend, critically"
    ", optimise, optimize, refactor, reconstruct, alternatives, correctness, deadlock"
    ", architecture, contradict, migration plan, step by step, step-by-step, every step, each step"
    ", root cause, possible causes, work out, reason about, tell them apart"
    ", show your work, show that",
    "比较 对比 设计 分析 评估 权衡 利弊 优缺点 论证 推理 方案 优化 排查 逐一 逐步 推演 架构 依据"
    " 理由 并讨论 机制 死锁 选型",
    3,
    2,
    7,
)
_PROOF = _Terms(
    "prove, proves, proving, proof, derive, derivation, counterexample, counter-example"
    ", lower bound",
    "证明 推导 反例 求证",
    5,
    1,
    6,
)
_THEORY = _Terms(
    "theorem, conjecture, hypothesis, polynomial, polynomial-time, integral, gradient, recurrence"
    ", np, np-hard, np-complete, undecidable, irrational, eigenvalue, eigenvalues, isomorphism"
    ", complexity, optimal, cardinality, cardinalities, lock-free, integer solutions"
    ", memory ordering",
    "猜想 定理 积分 极值 矩阵 多项式 实根 正实数 概率分布 特征值 收敛 体积 一致性",
    3,
    2,
    5,
)
_HARMLESS = re.compile("怎么[说走]|设计师|我比较|比较[多少好大高慢快难小低长短贵差满便方喜]")
"""Chinese phrases of everyday that hold one of the terms."""
_FORMULA = re.compile(r"\\(?:int|sum|frac|lim|sqrt|prod)\b|[a-z]\^\d|[∫∑∏√≥≤∀∃]")
_FORMULA_MARKS = "\\^∫∑∏√≥≤∀∃"
"""One of them is in every formula: looking for them is fifty times as fast."""
_LANGUAGES = frozenset(
    ("python", "javascript", "typescript", "sql", "c++", "rust", "java", "golang", "bash", "regex")
)
_CODE = re.compile(
    r"```|^ *(?:def|class|import|public|private|func|fn|select|#include) .*[({;:,]$", re.M
)
_TRACE = re.compile(r"^[^\S\n]+(?:at [\w.$<>]+\(|File \".*\", line \d+)", re.M)
_LISTED = re.compile(r"(?:^|[\s:：])(?:\d{1,2}[.)、](?!\d)|[-*•]\s)\s*(?=\S)")
_TABLE_ROW = re.compile(r"^[^\S\n]*\|.*\|[^\S\n]*$", re.M)
_QUESTION = re.compile(r"[?？](?=\s|$|[^\w=&/])|？")
_TURN = re.compile(r"^[^\W\d][\w ]{0,15}[:：]\s", re.M)
_FIELD = re.compile(r"(?:^|\s)[\w.\-]+=(?:\"[^\"]*\"|\S+)")
_MACHINE_HEAD = re.compile(
    r"\s*(?:\d{4}-\d\d-\d\d[T ]\S*\s+)?(?:\[[\w.\- ]+\]\s*|(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR"
    r"|FATAL|CRITICAL)\b)"
)
_WORD = re.compile(r"c\+\+|[a-z][a-z'\-]*|[\u4e00-\u9fff]")
"""A word in lower case, or one Han character."""
_MACHINE_FIELDS = 3
"""Fields `name=value` that make a text a machine's."""
_LENGTHS = ((350, 4), (120, 3), (28, 2))
_QUESTION_LENGTH = 18
"""Different words from which length counts, and its points. Different ones, since a line that
repeats itself is no longer for it; a question by itself says much in fewer words. Tasks, length,
turns and questions alone make no text hard."""
_EXCHANGE = 2
"""Turns that make a text an account of an exchange."""
_TURNS = 4
"""Turns of one that has taken a course, more than a question and its answer."""
_ITEMS = 3
"""Items of a list, or rows of a table, that make it one."""


def route(text: str) -> Route:
    """The tier for `text`: a request, or a record to be analysed."""
    return _route(text, "")


def route_chat(messages: Sequence[Mapping[str, Any]]) -> Route:
    """The tier for a chat as the chat-completions protocol has it: by its last user message, with
    the one before where that is a short follow-up; what else was said counts by its length."""
    said = [_said(message) for message in messages]
    asked = [text for text, each in zip(said, messages, strict=True) if each.get("role") == "user"]
    if not asked:
        return route("\n".join(said))
    text = asked[-1]
    if len(asked) > 1 and len(_WORD.findall(text)) < FOLLOW_UP_WORDS:
        text = f"{asked[-2]}\n{text}"
    return _route(text, "\n".join(said))


def place(tier: Tier, models: int) -> int:
    """Which of `models`, given from the cheapest to the most powerful, answers `tier`. Between two
    it is the more powerful one: doubt costs money, not quality. With two models `balanced` goes to
    the powerful one."""
    return -(-TIERS.index(tier) * (models - 1) // (len(TIERS) - 1))


def _route(text: str, around: str) -> Route:
    """The tier for `text`; what is said `around` it counts by its length."""
    text, around = _looked_at(text), _looked_at(around)
    if _is_machine(text):
        return _decide({"code": 2 if _TRACE.search(text) else 0})
    lower = text.lower()
    words = set(_WORD.findall(lower))
    chinese = not lower.isascii()
    if chinese:
        lower = _HARMLESS.sub("", lower)
    rows = len(_TABLE_ROW.findall(text))
    listed = len(_LISTED.findall(text)) >= _ITEMS or rows > _ITEMS
    code = 2 if _CODE.search(lower) or _TRACE.search(text) else len(words & _LANGUAGES) > 0
    theory = _THEORY.points(lower, words, chinese)
    asked: dict[Reason, int] = {
        "proof": _PROOF.points(lower, words, chinese),
        "reasoning": _REASONING.points(lower, words, chinese),
        "theory": max(theory, 3 if _has_formula(lower) else 0),
        "code": int(code),
        "structure": 2 if listed else 0,
    }
    questions, turns = len(_QUESTION.findall(text)), len(_TURN.findall(text))
    own = set(text.splitlines())
    beside = [_words_of(line) for line in around.splitlines() if line not in own]
    different = _different(words.union(*beside))
    bulk: dict[Reason, int] = {
        "task": _TASK.points(lower, words, chinese),
        "questions": min(3, max(0, questions - 1)),
        "dialogue": 2 if turns >= _TURNS else 0,
        "length": _length_points(different, questions > 0 and turns < _EXCHANGE),
    }
    if sum(bulk.values()) >= POWERFUL_POINTS:
        weightiest = max(bulk, key=lambda name: bulk[name])
        bulk = {weightiest: POWERFUL_POINTS - 1}
    return _decide(asked | bulk)


@lru_cache(maxsize=_LINES_KEPT)
def _words_of(line: str) -> frozenset[str]:
    """The words of a line: of a system message, or of what was said before, which comes again."""
    return frozenset(_WORD.findall(line.lower()))


def _length_points(words: int, question: bool) -> int:
    """Points for so many different words. `question`: the text is one, not an account of any."""
    if question and words >= _QUESTION_LENGTH:
        words = max(words, _LENGTHS[-1][0])
    return next((points for least, points in _LENGTHS if words >= least), 0)


def _looked_at(text: str) -> str:
    return text if len(text) <= 2 * LOOKED_AT else f"{text[:LOOKED_AT]}\n{text[-LOOKED_AT:]}"


def _decide(points: Mapping[Reason, int]) -> Route:
    total = sum(points.values())
    if total < BALANCED_POINTS:
        return Route("fast", "plain")
    reason = max(points, key=lambda name: points[name])
    return Route("powerful" if total >= POWERFUL_POINTS else "balanced", reason)


def _has_formula(text: str) -> bool:
    return any(mark in text for mark in _FORMULA_MARKS) and bool(_FORMULA.search(text))


def _is_machine(text: str) -> bool:
    """Whether a program wrote it: nothing in it is a request."""
    if _MACHINE_HEAD.match(text):
        return True
    return text.count("=") >= _MACHINE_FIELDS and len(_FIELD.findall(text)) >= _MACHINE_FIELDS


def _different(words: Set[str]) -> int:
    """How many `words` there are; two Han characters are about one."""
    han = sum(word >= "\u4e00" for word in words)
    return len(words) - han // 2


def _said(message: Mapping[str, Any]) -> str:
    """The text of a message, also where its content is a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(
        part["text"]
        for part in parts
        if isinstance(part, Mapping) and isinstance(part.get("text"), str)
    )
