"""The store against a dict: whatever is done to it, also a kill in the middle of a batch."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from serve.ask.answers import Answers
from serve.ask.answers_upkeep import contents, export, forget

KEYS = [bytes([n]) * 32 for n in range(24)]
NAMES = ["pace", "tokens"]
MODELS = ["large", "small", None]

batches = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(MODELS)), max_size=30)


class StoreMachine(RuleBasedStateMachine):
    """Does the same to a store and to a dict of key -> (value, time)."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.now = 1000
        self.number = self.kills = 0
        self.path = self.folder / "a.db"
        self.store = Answers(self.path, clock=lambda: self.now)
        self.answers: dict[bytes, tuple[bytes, int]] = {}
        self.learned: dict[str, tuple[bytes, int]] = {}

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    def value(self, model: str | None) -> bytes:
        """One that was never stored before."""
        self.number += 1
        return orjson.dumps({"n": self.number} | ({"model": model} if model else {}))

    @rule(batch=batches, replace=st.booleans())
    def put(self, batch: Sequence[tuple[bytes, str | None]], replace: bool) -> None:
        items = [(key, self.value(model)) for key, model in batch]
        self.store.put_many(items, replace)
        for key, value in items:
            if replace or key not in self.answers:
                self.answers[key] = value, self.now

    @rule(batch=batches, at=st.integers(0, 30))
    def killed_while_putting(self, batch: Sequence[tuple[bytes, str | None]], at: int) -> None:
        """What the files hold at that moment is what a killed process leaves."""
        self.kills += 1
        left = self.folder / str(self.kills)

        def items() -> Iterator[tuple[bytes, bytes]]:
            for number, (key, model) in enumerate(batch):
                if number == at:
                    self.copy(left)
                yield key, self.value(model)

        self.store.put_many(items())
        if not left.exists():
            self.copy(left)
            for key, value in self.store.get_many([key for key, _ in batch]).items():
                self.answers.setdefault(key, (value, self.now))
        self.store.close()
        self.path = left / "a.db"
        self.store = Answers(self.path, clock=lambda: self.now)

    def copy(self, to: Path) -> None:
        to.mkdir()
        for name in ("a.db", "a.db-wal"):
            shutil.copy(self.path.with_name(name), to)

    @rule(name=st.sampled_from(NAMES))
    def learn(self, name: str) -> None:
        value = self.value(None)
        self.store.keep_learned(name, value)
        self.learned[name] = value, self.now

    @rule(age=st.integers(0, 20))
    def prune(self, age: int) -> None:
        before = self.now - age
        pruned = self.store.prune(before)
        kept = {key: (v, at) for key, (v, at) in self.answers.items() if at >= before}
        learned = {name: (v, at) for name, (v, at) in self.learned.items() if at >= before}
        assert pruned == (len(self.answers) - len(kept), len(self.learned) - len(learned))
        self.answers, self.learned = kept, learned

    @rule(model=st.sampled_from(["large", "small"]), age=st.integers(0, 20), dry=st.booleans())
    def forget(self, model: str, age: int, dry: bool) -> None:
        before = self.now - age
        gone = {
            key
            for key, (value, at) in self.answers.items()
            if at < before and orjson.loads(value).get("model") == model
        }
        forgotten = forget(self.store, before, model, dry_run=dry)
        assert (forgotten.answers, forgotten.learned) == (len(gone), 0)
        if not dry:
            self.answers = {k: v for k, v in self.answers.items() if k not in gone}

    @rule(seconds=st.integers(1, 10))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = Answers(self.path, clock=lambda: self.now)

    @rule(age=st.integers(0, 20))
    def recall_what_is_new(self, age: int) -> None:
        since = self.now - age
        expected = {key: value for key, (value, at) in self.answers.items() if at >= since}
        assert self.store.get_many(KEYS, since) == expected

    @invariant()
    def holds_the_same(self) -> None:
        expected = {key: value for key, (value, _) in self.answers.items()}
        assert self.store.get_many(KEYS) == expected
        assert len(self.store) == len(expected)
        for name in NAMES:
            value = self.learned.get(name)
            assert self.store.learned(name) == (value and value[0])


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=12, stateful_step_count=20)

values = st.one_of(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    ).map(orjson.dumps),
    st.binary(max_size=20),
    st.text().map(lambda text: text.encode("utf-8", "replace")),
)


@settings(max_examples=40)
@given(stored=st.dictionaries(st.sampled_from(KEYS), values))
def test_what_is_exported_is_what_was_stored(stored: dict[bytes, bytes]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Answers(Path(folder) / "a.db", clock=lambda: 86_400.0) as store,
    ):
        store.put_many(stored.items())
        lines = list(export(store))
        assert list(export(store)) == lines
        assert contents(store).answers == len(stored)
    back: dict[bytes, object] = {}
    for line in lines:
        assert line.count(b"\n") == 1
        row = orjson.loads(line)
        assert row["stored_at"] == "1970-01-02T00:00:00Z"
        back[bytes.fromhex(row["key"])] = (
            row["answer"] if "answer" in row else bytes.fromhex(row["bytes"])
        )
    assert list(back) == sorted(stored)
    for key, value in stored.items():
        assert back[key] == value or orjson.loads(value) == back[key]
