"""How `fupan serve` ends where it has models of its own."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import httpx
import pytest

from job.commands.serve_cluster import in_flight
from tests.serve.gateway_process import Process, gateway_process

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]

CONFIG = {
    "models": {"e5": {"embedder": "bundled"}},
    "serve": {"admission": {"in_flight": 1}, "timeout": 200},
}
REQUESTS = 20
TEXT = "{}: " + "it was paid twice and the refund has not come: what went wrong? " * 20


def test_who_waits_in_the_gateway_gets_an_answer_of_the_model_though_it_is_ending(
    tmp_path: Path,
) -> None:
    async def crowd(gateway: Process) -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=240) as http:

            def ask(number: int) -> asyncio.Task[httpx.Response]:
                texts = [TEXT.format(f"{number}-{each}") for each in range(2)]
                body = {"model": "e5", "input": texts}
                return asyncio.create_task(http.post("/embeddings", json=body))

            assert (await ask(REQUESTS)).status_code == 200
            asked = [ask(number) for number in range(REQUESTS)]
            arrived = 0
            while arrived < REQUESTS:
                answered = sum(each.done() for each in asked)
                assert answered < REQUESTS / 2, "too few had to wait"
                inside = await asyncio.to_thread(in_flight, gateway.url)
                arrived = answered + (inside or 0)
            gateway.process.send_signal(signal.SIGTERM)
            return await asyncio.gather(*asked)

    with gateway_process(CONFIG, tmp_path) as gateway:
        answers = asyncio.run(crowd(gateway))
        assert [each.text for each in answers if each.status_code != 200] == []
        assert gateway.process.wait(120) == 0
