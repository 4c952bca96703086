"""The parts of `scripts/bench embed`: what it sends, counts and holds against each other."""

from __future__ import annotations

import os
from itertools import islice

import pytest
from aiohttp import web

from scripts.benchmarks.embed import ALONE, MANY, OWN, PLAIN, SINGLE, bars, figures
from scripts.benchmarks.embed_load import Round, alone, over_http, together
from scripts.benchmarks.embed_texts import pieces, requests
from tests.serving import serving


def test_no_two_texts_are_equal_and_they_are_the_same_every_time() -> None:
    texts = list(islice(pieces(1), 300))
    assert len(set(texts)) == 300
    assert texts == list(islice(pieces(1), 300))
    lengths = sorted(map(len, texts))
    assert 100 <= lengths[0] < 130
    assert 700 < lengths[-1] < 820


def test_all_texts_are_sent_once_and_counted() -> None:
    seen: list[str] = []

    async def embeddings(request: web.Request) -> web.Response:
        given = (await request.json())["input"]
        texts = [given] if isinstance(given, str) else given
        seen.extend(texts)
        return web.json_response({"data": [{"embedding": [1.0]} for _ in texts]})

    application = web.Application()
    application.router.add_post("/v1/embeddings", embeddings)
    texts = list(islice(pieces(2), 25))
    with serving(application) as url:
        one = over_http(f"{url}/v1/embeddings", "m", os.getpid(), 3, requests(texts, 4))
        with pytest.raises(RuntimeError, match="404"):
            over_http(f"{url}/elsewhere", "m", os.getpid(), 3, requests(texts, 1))
    assert sorted(seen) == sorted(texts)
    assert one.texts > 0
    assert len(one.took) == 7
    assert 0 < one.within(0.5) <= one.within(0.99)


def test_speeds_are_medians_and_times_are_of_all_requests() -> None:
    rounds = [Round(100, [5.0] * 40, 20), Round(300, [4.0] * 40, 10), Round(200, [9.0] * 20, 30)]
    found = together(rounds)
    assert (found.texts, found.cpu, len(found.took)) == (200, 20, 100)
    assert (found.within(0.5), found.within(0.99)) == (5.0, 9.0)
    # 200 texts of 20 ms each a second.
    assert found.cores == 4.0
    assert figures(found) == ["200.0", "5.0", "9.0", "20.0", "4.0"]
    assert alone(lambda texts: texts, [["a", "b"], ["c"]]).texts > 0


def test_the_bars_hold_from_their_shares_on() -> None:
    speeds = {ALONE: (100.0, 100.0), PLAIN: (40.0, 40.0), OWN: (90.0, 80.0)}
    medians = {
        (name, size): Round(of[place], [1.0], 1)
        for name, of in speeds.items()
        for place, size in enumerate((MANY, SINGLE))
    }
    held = bars("minilm", medians)
    assert [(bar.value, bar.limit) for bar in held] == [
        (0.9, 0.9),
        (2.25, 2.0),
        (0.8, 0.8),
        (2.0, 1.6),
    ]
    assert all(bar.holds for bar in held)
    of_plain = [bar.limit for bar in bars("bundled", medians) if PLAIN in bar.what]
    assert of_plain == [1.6, 1.6]
