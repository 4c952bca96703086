"""Streams that join and leave at every step: each writes what it would write alone."""

from __future__ import annotations

import random
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serve.ask.errors import AskError, Unavailable
from serve.generation.engine import Engine
from serve.generation.sequence import Piece, Sequence
from tests.serve.generation_world import FakeForward, stream, written


def _run(engine: Engine) -> list[tuple[Sequence, Piece]]:
    found: list[tuple[Sequence, Piece]] = []
    while (ready := engine.step()) is not None:
        found += ready
    return found


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_each_stream_writes_what_it_would_alone_whoever_joins_and_leaves(seed: int) -> None:
    some = random.Random(seed)
    forward = FakeForward(slots=3, context=120)
    engine = Engine(forward, chunk=8)
    asked = [
        (some.choices([1, 2], k=some.randint(1, 90)), some.randint(1, 12))
        for _ in range(some.randint(1, 10))
    ]
    streams = [stream(prompt, most) for prompt, most in asked]
    coming = list(streams)
    while coming or engine.step() is not None:
        for _ in range(some.randint(0, 3)):
            if coming:
                engine.add(coming.pop(0))
        engine.step()
        forward.most = some.choice([None, None, None, 4])
        if some.random() < 0.1:
            some.choice(streams).left = True
    for each, (prompt, most) in zip(streams, asked, strict=True):
        count = each.written
        assert each.tokens == [*prompt, *written(prompt, count)]
        assert each.left or (each.finish, count) == ("length", most)


def test_streams_that_write_get_a_token_at_every_step_while_a_long_prompt_is_read() -> None:
    forward = FakeForward(slots=2, context=400)
    engine = Engine(forward, chunk=16)
    quick = stream([1], most=30)
    engine.add(quick)
    engine.step()
    engine.add(stream([2] * 200))
    for count in range(2, 14):
        engine.step()
        assert quick.written == count
    assert max(len(work.tokens) for plan in forward.plans[1:] for work in plan.works) == 16


def test_a_common_beginning_is_computed_once() -> None:
    forward = FakeForward()
    engine = Engine(forward, chunk=16)
    beginning = list(range(1, 41))
    first, second = stream([*beginning, 50]), stream([*beginning, 60])
    engine.add(first)
    _run(engine)
    engine.add(second)
    _run(engine)
    assert (first.reused, second.reused) == (0, 40)
    assert second.tokens[41:] == written([*beginning, 60], 5)


@pytest.mark.parametrize("first_runs", [True, False])
def test_nothing_of_a_tenant_is_used_for_another(first_runs: bool) -> None:
    engine = Engine(FakeForward(), chunk=16)
    prompt = list(range(1, 41))
    first, other, same = (stream(prompt, tenant=tenant) for tenant in ("shop", "bank", "shop"))
    engine.add(first)
    for _ in range(2 if first_runs else 20):
        engine.step()
    engine.add(other)
    engine.add(same)
    _run(engine)
    assert (first.reused, other.reused) == (0, 0)
    # Where the first has left, the other has computed over it.
    assert (same.reused > 0) is first_runs
    assert first.tokens == other.tokens == same.tokens == [*prompt, *written(prompt, 5)]


def test_who_came_first_is_served_first() -> None:
    engine = Engine(FakeForward(slots=1), chunk=16)
    streams = [stream([1 + i]) for i in range(4)]
    for each in streams:
        engine.add(each)
    ended = [each for each, piece in _run(engine) if piece.finish is not None]
    assert ended == streams


def test_a_stream_that_nobody_waits_for_gives_its_slot_to_the_next_at_the_next_step() -> None:
    engine = Engine(FakeForward(slots=1), chunk=16)
    gone, next_one = stream([1], most=100), stream([2])
    engine.add(gone)
    engine.add(next_one)
    engine.step()
    assert (gone.written, next_one.written) == (1, 0)
    gone.left = True
    engine.step()
    assert (gone.written, next_one.written) == (1, 1)


def test_out_of_memory_fails_nobody_who_can_be_served_with_fewer_beside() -> None:
    forward = FakeForward(slots=4)
    forward.most = 2
    engine = Engine(forward, chunk=16)
    streams = [stream([1, 2, 3 + i]) for i in range(6)]
    for each in streams:
        engine.add(each)
    assert not [piece.error for _, piece in _run(engine) if piece.error]
    assert [each.finish for each in streams] == ["length"] * 6
    assert engine.slots < 4


def test_a_request_for_which_there_is_no_memory_at_all_fails_alone() -> None:
    forward = FakeForward(slots=2)
    forward.most = 0
    engine = Engine(forward, chunk=4)
    engine.add(stream([1, 2, 3]))
    ((_, piece),) = _run(engine)
    assert isinstance(piece.error, Unavailable)
    assert (piece.error.status, piece.error.retry_after) == (503, 30.0)
    forward.most = None
    healthy = stream([1])
    engine.add(healthy)
    _run(engine)
    assert healthy.finish == "length"
    assert engine.broken is None


def test_a_stream_whose_grammar_fails_ends_alone() -> None:
    class Costly:
        def allowed(self) -> None:
            raise AskError("too costly", 400)

    engine = Engine(FakeForward(), chunk=16)
    poisoned, beside = stream([1], grammar=Costly()), stream([2])
    engine.add(poisoned)
    engine.add(beside)
    failed = [each for each, piece in _run(engine) if piece.error is not None]
    assert failed == [poisoned]
    assert beside.tokens[1:] == written([2], 5)


def test_a_model_that_breaks_says_so_and_fails_all() -> None:
    forward = FakeForward(slots=1)
    engine = Engine(forward, chunk=16)
    streams = [stream([1]), stream([2])]
    for each in streams:
        engine.add(each)
    forward.error = RuntimeError("CUDA error")
    errors = [piece.error for _, piece in engine.step() or []]
    assert [type(error) for error in errors] == [Unavailable, Unavailable]
    assert engine.broken is forward.error
    forward.error = None
    late = stream([1, 2])
    engine.add(late)
    ((failed, piece),) = engine.step() or []
    assert (failed, type(piece.error)) == (late, Unavailable)
    assert engine.step() is None
    assert not forward.plans


def test_numbers_that_are_none_end_their_stream_and_nobody_else_in_its_slot() -> None:
    forward = FakeForward(slots=3)
    forward.poison = 9
    engine = Engine(forward, chunk=64)
    prompt = [9, *range(10, 40)]
    ill, beside, last = stream(prompt), stream([1], most=20), stream([2], most=20)
    for each in (ill, beside, last):
        engine.add(each)
    found = _run(engine)
    forward.poison = None
    later = [stream(prompt), stream([3]), stream([4])]
    for each in later:
        engine.add(each)
    found += _run(engine)
    assert [each for each, piece in found if piece.error is not None] == [ill]
    assert later[0].reused == 0
    for each in (beside, last, *later):
        assert each.tokens[each.prompt :] == written(each.tokens[: each.prompt], each.written)


def test_streams_that_were_given_up_while_they_waited_wait_no_longer() -> None:
    engine = Engine(FakeForward(slots=1), chunk=16)
    running = stream([1], most=200)
    engine.add(running)
    for _ in range(50):
        gone = stream([2] * 50)
        engine.add(gone)
        engine.step()
        gone.left = True
    there = weakref.ref(gone.text)
    del gone
    engine.step()
    assert there() is None
    assert running.written == 51


@pytest.mark.parametrize(("writing", "coming", "chunks"), [(1, 1, 1), (1, 3, 3), (2, 9, 4)])
def test_more_is_read_in_a_step_where_more_wait_than_write(
    writing: int, coming: int, chunks: int
) -> None:
    forward = FakeForward(slots=16, context=400)
    engine = Engine(forward, chunk=16)
    for i in range(writing):
        engine.add(stream([i], most=50))
    engine.step()
    for i in range(coming):
        engine.add(stream([40 + i] * 200))
    engine.step()
    assert sum(len(work.tokens) for work in forward.plans[-1].works) - writing == 16 * chunks


@pytest.mark.parametrize("most", [1, 7])
def test_numbers_tell_what_runs_and_how_fast(most: int) -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.5
        return now

    engine = Engine(FakeForward(slots=4, context=100), chunk=16, clock=clock)
    for i in range(2):
        engine.add(stream([1 + i], most=most + 1))
    for _ in range(most):
        engine.step()
    numbers = engine.numbers()
    assert (numbers["running"], numbers["batch_size"]) == (2, 2.0)
    assert numbers["cache_use"] == pytest.approx(2 * most / 400)
    assert numbers["tokens_per_second"] == pytest.approx(2 * most / (most - 0.5))
