"""How an answer is sealed where others may write too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from serve.cache.kept import WRITER, WRITER_BYTES, seal, unseal

WRITERS = st.binary(min_size=WRITER_BYTES, max_size=WRITER_BYTES)


@given(st.binary(), st.binary(), WRITERS)
def test_what_was_sealed_comes_back_and_says_who_wrote_it(
    key: bytes, value: bytes, writer: bytes
) -> None:
    sealed = seal(key, value, writer)
    assert unseal(key, sealed) == value
    assert sealed[WRITER] == writer


@given(st.binary(), st.binary(min_size=1), WRITERS, st.data())
def test_a_changed_byte_is_seen(
    key: bytes, value: bytes, writer: bytes, data: st.DataObject
) -> None:
    sealed = bytearray(seal(key, value, writer))
    place = data.draw(st.integers(WRITER.stop, len(sealed) - 1))
    sealed[place] ^= data.draw(st.integers(1, 255))
    assert unseal(key, bytes(sealed)) is None


@given(st.binary(max_size=40), st.binary())
def test_anything_is_looked_at_without_an_error(sealed: bytes, key: bytes) -> None:
    unseal(key, sealed)
