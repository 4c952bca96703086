"""A model's streams beside `generate` of transformers: tokens a second, and the first one's delay.

In one process and one run, by turns, over the same prompts, the likeliest token each time: the
library's `generate` for one prompt after the other and for all in one batch, its continuous
batching, and the server that the cluster runs, with 1, 8 and 32 streams that begin at once. Nothing
that is computed for one prompt is of use to another; prompts with a common beginning, which the
server computes once, are a row of their own. Then answers to JSON schemas, each of which must fit
its own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Any, NamedTuple

import orjson

from scripts.benchmarks.checks import Bar, print_table, verdict
from scripts.benchmarks.generate_json import constrained
from scripts.benchmarks.generate_prompts import Prompt, prompts_of

MODEL = "smollm2-135m"
ALONE, BATCH, LIBRARY, OWN = "one by one", "one batch", "continuous batching", "server"
SHARED = "server, common beginning"
STREAMS = (1, 8, 32)
OF_MEAN = 0.5
"""The slowest stream's share of the mean of tokens a second."""
BESIDE = 8
"""Streams from which on the server must write FASTER times what `generate` does one by one."""
FASTER = 2.0
NO_SLOWER = 0.9
"""With fewer."""


class Stream(NamedTuple):
    """One answer: seconds to its first token and to its end, and how many tokens it has."""

    first: float
    end: float
    tokens: int


class Round(NamedTuple):
    """All streams of a turn. `seconds`: from the first's beginning to the last's end; `cpu`: those
    that this process computed, on all cores."""

    streams: list[Stream]
    seconds: float
    cpu: float = 0.0

    @property
    def speed(self) -> float:
        """Tokens a second in all."""
        return sum(each.tokens for each in self.streams) / self.seconds

    @property
    def cost(self) -> float:
        """CPU milliseconds a token: what is left to compare by on a machine that others use."""
        return 1000 * self.cpu / sum(each.tokens for each in self.streams)

    @property
    def slowest(self) -> float:
        """The slowest stream's tokens a second, as a share of the mean."""
        speeds = [each.tokens / each.end for each in self.streams]
        return min(speeds) / fmean(speeds)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this benchmark alone."""
    parser.add_argument(
        "--model", default=MODEL, help=f"whatever `generator` may be (default {MODEL})"
    )
    parser.add_argument("--tokens", type=int, default=64, help="of an answer at most (default 64)")
    parser.add_argument(
        "--streams", type=int, nargs="+", default=STREAMS, help="at once (default 1 8 32)"
    )
    parser.add_argument("--rounds", type=int, default=2, help="of each (default 2)")
    parser.add_argument(
        "--constrained",
        type=int,
        default=100,
        help="answers to schemas that end (default 100)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the benchmark; 0 if all bars hold."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from serve.generation.server import GenerationServer
    from serve.models.settings import GeneratorSettings

    server = GenerationServer(GeneratorSettings(generator=args.model))
    library = _Library(args.model, args.tokens)
    found: dict[tuple[str, int], list[Round]] = {}
    with asyncio.Runner() as runner:

        def own(prompts: Sequence[Prompt]) -> Round:
            return runner.run(_served(server, prompts, args.tokens))

        turns: Mapping[str, Callable[[Sequence[Prompt]], Round]] = {
            ALONE: library.alone,
            BATCH: library.batch,
            LIBRARY: library.continuous,
            OWN: own,
            SHARED: own,
        }
        for name in turns:
            turns[name](prompts_of(1, -1, name == SHARED))
        for number in range(args.rounds):
            for count in args.streams:
                for name in list(turns)[:: -1 if number % 2 else 1]:
                    used = time.process_time()
                    one = turns[name](prompts_of(count, number, name == SHARED))
                    one = one._replace(cpu=time.process_time() - used)
                    found.setdefault((name, count), []).append(one)
        kept = runner.run(constrained(server, args.constrained, args.seed))
        runner.run(server.aclose())
    print_table(
        (
            "",
            "streams",
            "tokens/s",
            "first s",
            "last first s",
            "slowest / mean",
            "CPU ms a token",
        ),
        [_row(name, count, rounds) for (name, count), rounds in found.items()],
    )
    print(f"\n{kept}")
    speed = {key: median(each.speed for each in rounds) for key, rounds in found.items()}
    bars = [
        Bar(
            f"{OWN} / {ALONE}, {count} streams",
            speed[OWN, count] / speed[ALONE, count],
            ">=",
            FASTER if count >= BESIDE else NO_SLOWER,
        )
        for count in args.streams
    ]
    bars += [
        Bar(
            f"slowest / mean of {count} streams",
            min(each.slowest for each in found[OWN, count]),
            ">=",
            OF_MEAN,
        )
        for count in args.streams
    ]
    bars.append(Bar("answers that ended", kept.ended, ">=", args.constrained))
    bars.append(Bar("answers that do not fit their schema", kept.wrong, "==", 0))
    return verdict(bars)


async def _served(server: Any, prompts: Sequence[Prompt], tokens: int) -> Round:
    began = time.perf_counter()

    async def one(prompt: Prompt) -> Stream:
        first, used = 0.0, 0
        body = {
            "model": MODEL,
            "messages": prompt,
            "temperature": 0,
            "max_tokens": tokens,
            "stream_options": {"include_usage": True},
        }
        async for chunk in server.stream("chat/completions", body, 600):
            first = first or time.perf_counter() - began
            used = (orjson.loads(chunk).get("usage") or {}).get("completion_tokens", used)
        return Stream(first, time.perf_counter() - began, used)

    streams = await asyncio.gather(*map(one, prompts))
    return Round(list(streams), time.perf_counter() - began)


class _Library:
    """`generate` of transformers, with the same weights, threads and device."""

    def __init__(self, model: str, tokens: int) -> None:
        import torch

        from serve.generation.load import read_model

        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model, self._tokenizer = read_model(model, device)
        self._model.to(device)
        self._tokens = tokens
        self._model.set_attn_implementation("sdpa")

    def alone(self, prompts: Sequence[Prompt]) -> Round:
        """One prompt after the other; all wait from the beginning."""
        began, streams = time.perf_counter(), []
        for prompt in prompts:
            first = _First(began)
            ids = self._ids([prompt])
            out = self._model.generate(**ids, streamer=first, **self._how())
            count = out.shape[1] - ids["input_ids"].shape[1]
            streams.append(Stream(first.seconds, time.perf_counter() - began, count))
        return Round(streams, time.perf_counter() - began)

    def batch(self, prompts: Sequence[Prompt]) -> Round:
        """All in one batch; nobody is told anything before the end."""
        began = time.perf_counter()
        ids = self._ids(prompts)
        out = self._model.generate(**ids, **self._how())
        seconds = time.perf_counter() - began
        counts = [self._written(row[ids["input_ids"].shape[1] :].tolist()) for row in out]
        return Round([Stream(seconds, seconds, count) for count in counts], seconds)

    def continuous(self, prompts: Sequence[Prompt]) -> Round:
        """The library's continuous batching; told at the end."""
        from transformers import ContinuousBatchingConfig, GenerationConfig

        began = time.perf_counter()
        ids = [self._ids([prompt])["input_ids"][0].tolist() for prompt in prompts]
        end = self._tokenizer.eos_token_id
        config = GenerationConfig(
            max_new_tokens=self._tokens, do_sample=False, eos_token_id=end, pad_token_id=end
        )
        # By itself it takes most of the machine's memory, and the time to fill it.
        room = ContinuousBatchingConfig(
            page_size=32, num_blocks=256, max_batch_tokens=512, max_requests_per_batch=max(STREAMS)
        )
        found = self._model.generate_batch(
            ids, generation_config=config, continuous_batching_config=room, warmup=False
        )
        seconds = time.perf_counter() - began
        self._model.set_attn_implementation("sdpa")
        counts = [len(each.generated_tokens) for each in found.values()]
        return Round([Stream(seconds, seconds, count) for count in counts], seconds)

    def _ids(self, prompts: Sequence[Prompt]) -> Any:
        self._tokenizer.padding_side = "left"
        given = [list(prompt) for prompt in prompts]
        found = self._tokenizer.apply_chat_template(
            given, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True
        )
        return found.to(self._model.device)

    def _how(self) -> dict[str, Any]:
        return {"max_new_tokens": self._tokens, "do_sample": False}

    def _written(self, tokens: list[int]) -> int:
        end = self._tokenizer.eos_token_id
        return tokens.index(end) + 1 if end in tokens else len(tokens)


class _First:
    """Hears when the first token came. The library tells it the prompt before."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._told = 0
        self.seconds = 0.0

    def put(self, _: Any) -> None:
        """The prompt, then each token."""
        self._told += 1
        if self._told == 2:
            self.seconds = time.perf_counter() - self._began

    def end(self) -> None:
        """Nothing follows."""


def _row(name: str, count: int, rounds: Sequence[Round]) -> tuple[str, ...]:
    firsts = [[each.first for each in one.streams] for one in rounds]
    return (
        name,
        str(count),
        f"{median(one.speed for one in rounds):.1f}",
        f"{median(fmean(each) for each in firsts):.2f}",
        f"{median(max(each) for each in firsts):.2f}",
        f"{min(one.slowest for one in rounds):.2f}",
        f"{median(one.cost for one in rounds):.1f}",
    )
