"""A conversation: finding its turns in a record and writing one line for each.

Invariant: each turn is rendered once, in order, with its speaker as the data names it; a dialogue
that is held twice in one record is rendered once. What is attached to a turn (times, attributes,
candidates) is not part of what was said and stays out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from job.clean.nested import json_in
from job.clean.render import Hide, key_values, scalar
from job.clean.shape import SAID, SENT, SPEAKER, Shape, plain

_LINE = re.compile(
    r"^[ \t]*(user|human|customer|client|visitor|assistant|ai|bot|agent|system|support|chatgpt|gpt"
    r"|用户|客户|顾客|访客|买家|客服|助手|坐席|机器人|商家|卖家|系统)[^\n:：]{0,12}[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_PROBED = 5
"""Elements of a list that are looked at to tell what it holds."""


def find_turns(data: Mapping[str, Any], shape: Shape) -> list[Any] | None:
    """The turns of a record that is a conversation: a list under a name for one, a prompt with its
    reply, or any list of objects that each have a speaker and a text; else None."""
    for field in shape.of("turns"):
        value = json_in(data[field])
        if isinstance(value, Mapping):
            value = next((inner for inner in value.values() if are_turns(inner)), None)
        if are_turns(value) or (_all_text(value) and not shape.of("level")):
            return list(value)
    for value in data.values():
        if isinstance(value, list) and are_turns(value, with_speakers=True):
            return value
    if shape.of("prompt") and shape.of("reply") and not shape.of("level"):
        prompt, reply = data[shape.of("prompt")[0]], data[shape.of("reply")[0]]
        if isinstance(prompt, str) and isinstance(reply, str) and prompt.strip():
            return [("user", prompt), ("assistant", reply)]
    return None


def are_turns(value: Any, *, with_speakers: bool = False) -> bool:
    """Whether a list holds turns: objects with a text, or pairs of speaker and text."""
    if not isinstance(value, list) or not value:
        return False
    probed = [turn for turn in value[:_PROBED] if turn is not None]
    return bool(probed) and all(_is_turn(turn, with_speakers) for turn in probed)


def _is_turn(turn: Any, with_speaker: bool) -> bool:
    if isinstance(turn, list | tuple):
        return len(turn) == 2 and all(isinstance(part, str) for part in turn)
    if not isinstance(turn, Mapping):
        return False
    names = {plain(str(name)) for name in turn}
    said = not names.isdisjoint(SAID) or "toolcalls" in names
    return said and (not with_speaker or not names.isdisjoint(SPEAKER[:-1]))


def _all_text(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(isinstance(v, str) for v in value)


def is_transcript(text: str) -> bool:
    """Whether a plain text is a conversation: two lines or more that open with a speaker, and at
    least two speakers."""
    if "\n" not in text or (":" not in text and "：" not in text):
        return False
    return len({match[1].lower() for match in _LINE.finditer(text)}) > 1


def times_of(turns: Iterable[Any]) -> Iterable[Any]:
    """The times of the turns as they stand in the data, in order."""
    for turn in turns:
        if isinstance(turn, Mapping):
            by_plain = {plain(str(name)): value for name, value in turn.items()}
            yield from (by_plain[name] for name in SENT if name in by_plain)


def render_turns(turns: Iterable[Any], hide: Hide) -> str:
    """One line a turn: `role: what was said`, or what was said alone where no role is given."""
    lines = []
    for turn in turns:
        speaker, said = _speaker_and_said(turn, hide)
        if said:
            lines.append(f"{speaker}: {said}" if speaker else said)
    return "\n".join(lines)


def _speaker_and_said(turn: Any, hide: Hide) -> tuple[str, str]:
    if isinstance(turn, list | tuple) and len(turn) == 2 and isinstance(turn[0], str):
        return turn[0].strip(), said_in(turn[1], hide)
    if not isinstance(turn, Mapping):
        return "", said_in(turn, hide)
    by_plain = {plain(str(name)): value for name, value in turn.items()}
    speaker = next((s for n in SPEAKER if (s := _speaker(by_plain.get(n)))), "")
    said = next((s for n in SAID if (s := said_in(by_plain.get(n), hide))), "")
    calls = by_plain.get("toolcalls") or by_plain.get("functioncall")
    for call in calls if isinstance(calls, list) else [calls] if calls else []:
        said = f"{said} {_call(call, hide)}".strip()
    return speaker, said


def _speaker(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("role") or value.get("name")
    return value.strip() if isinstance(value, str) else ""


def said_in(content: Any, hide: Hide) -> str:
    """The text of a turn's content: a string, an object that has it, or a list of parts of which
    those that are no text are named (`[image_url]`)."""
    if isinstance(content, list):
        return "\n".join(filter(None, (_part(part, hide) for part in content)))
    if isinstance(content, Mapping):
        inner = content.get("parts")
        return said_in(inner, hide) if _all_text(inner) else _part(content, hide)
    return scalar(content)


def _part(part: Any, hide: Hide) -> str:
    if not isinstance(part, Mapping):
        return scalar(part) if not isinstance(part, list) else key_values(part, hide)
    kind = scalar(part.get("type"))
    if kind in ("tool_use", "function_call"):
        return _call(part, hide)
    for name in ("text", "content", "value", "thinking", "refusal"):
        inner = part.get(name)
        if isinstance(inner, str) and inner.strip():
            return inner.strip()
        if isinstance(inner, list | Mapping) and inner:
            return key_values(inner, hide)
    return f"[{kind}]" if kind else key_values(part, hide)


def _call(call: Any, hide: Hide) -> str:
    """A call of a tool as `[call name(arguments)]`."""
    if not isinstance(call, Mapping):
        return f"[call {scalar(call)}]" if not isinstance(call, list) else ""
    function = call.get("function")
    of = function if isinstance(function, Mapping) else call
    given = of.get("arguments", of.get("input", ""))
    text = key_values(given, hide) if isinstance(given, Mapping | list) else scalar(given)
    return f"[call {scalar(of.get('name')) or 'tool'}({text})]"
