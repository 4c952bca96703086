"""Items -> the request that asks about them. Pure.

Invariant: the user message holds one JSON object per line and nothing else (DESIGN 4), so no text
can end its line or speak outside its own string.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from job.analyse.stored import AskSettings
from job.instructions import ANSWER_SCHEMA, Language, system_message, undated
from job.pack.packing import ISO_DATE_TOKENS, Fit, Item, dates_of, spans_dates, wire_line
from job.records import KINDS, Kind, Lane
from serve.ask import tokens
from serve.ask.contract import Request

SCHEMA_TOKENS = tokens.count(orjson.dumps(ANSWER_SCHEMA).decode()) + 20
"""What the schema takes in the system message, where the provider has no mode for it."""
DATE_TOKENS = 20
"""The line that says the date, which `undated` leaves out."""


def lane_of(items: Sequence[Item]) -> Lane:
    """The lane of a pack."""
    return items[0].record.lane


def wire_tokens(items: Sequence[Item]) -> int:
    """Our estimate of what the lines of a pack take."""
    return sum(item.line_tokens for item in items)


def pack_wire(items: Sequence[Item]) -> int:
    """The same of a pack as it is sent: with full times where it spans dates."""
    dated = spans_dates(items)
    return wire_tokens(items) + (ISO_DATE_TOKENS * len(items) if dated else 0)


def build_request(items: Sequence[Item], ask: AskSettings, fit: Fit, repair: bool) -> Request:
    """The request for a pack; the records' local ids are "1".."n" in the order of `items`."""
    kind, lane = items[0].record.kind, lane_of(items)
    dated = spans_dates(items)
    lines = [
        wire_line(str(number), item.record.time, item.text, dated)
        for number, item in enumerate(items, 1)
    ]
    wire = pack_wire(items)
    reserve = fit.reserve.needed(kind, lane, len(items))
    tokens_about = fit.input_tokens(kind, lane, wire) + fit.reserve.expected(kind, lane, len(items))
    given_up = any(item.rounds for item in items)
    return Request(
        system=system_message(kind, ask.language, lane, dates_of(items), repair, ask.own),
        user="\n".join(lines),
        max_output=fit.max_answer(kind, lane, wire, len(items), max(i.alone for i in items)),
        estimate_in=fit.instructions[kind, lane] + fit.overhead + wire,
        timeout=fit.seconds.timeout(kind, lane, tokens_about, reserve, given_up),
        schema=ANSWER_SCHEMA,
        schema_name="retrospective",
        model=ask.models[items[0].tier],
        billed_to=_billed_to(items),
    )


def _billed_to(items: Sequence[Item]) -> dict[tuple[str, str], float]:
    """For whom a pack is asked: kind and source, by the tokens of their records."""
    shares: dict[tuple[str, str], float] = {}
    for item in items:
        whom = (item.record.kind, item.record.source)
        shares[whom] = shares.get(whom, 0.0) + item.line_tokens
    return shares


def instruction_tokens(language: Language, own: str = "") -> dict[tuple[Kind, Lane], int]:
    """Tokens of the system message per kind and lane. What a repair adds is within the margin."""
    lanes: tuple[Lane, Lane] = ("fast", "slow")
    return {
        (kind, lane): tokens.count(undated(kind, language, lane, own=own)) + DATE_TOKENS
        for kind in KINDS
        for lane in lanes
    }
