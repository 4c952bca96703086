"""What the simulated model says of one document, as `POST /v1/analyze` of the gateway asks for it.

Invariant: pure; every word is the document's own, or the truth file's.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from serve.simulated_truth import Lang, Truth, answer_for

_WORDS = re.compile(r"[A-Za-z][A-Za-z-]{3,}|[㐀-鿿]{2,6}")
_SENTENCES = re.compile(r"[^。.！!？?\n]+[。.！!？?]?")
_KEYWORDS = 5
_LEVELS = {"normal": 1, "positive": 1, "unclear": 2, "problem": 4}
"""How difficult a document is by its outcome."""


def read_document(user: str) -> str | None:
    """The text of a user message that is one JSON object with a text and no id, else None."""
    try:
        fields = orjson.loads(user)
    except orjson.JSONDecodeError:
        return None
    text = fields.get("text") if isinstance(fields, dict) and "id" not in fields else None
    return text if isinstance(text, str) and text.strip() else None


def document_answer(truth: Truth, text: str, lang: Lang | None) -> dict[str, Any]:
    """Everything that can be asked about a document; a schema picks what it wants of it."""
    judged = answer_for(truth, text, lang)
    summary = "".join(_SENTENCES.findall(text)[:2]).strip() or text.strip()
    return {
        "keywords": list(dict.fromkeys(_WORDS.findall(text)))[:_KEYWORDS],
        "summary": summary,
        "level": _LEVELS[judged["outcome"]],
        "reason": summary,
        **judged,
    }
