"""Stop strings: nothing of one is ever shown, wherever the tokens begin and end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from serve.generation.stops import StopStrings

_TEXT = st.text(alphabet="ab\n", max_size=30)
_STOPS = st.lists(st.text(alphabet="ab\n", min_size=1, max_size=4), max_size=3)


def _shown(stops: list[str], pieces: list[str]) -> tuple[str, bool]:
    watch, shown = StopStrings(stops), ""
    for piece in pieces:
        more, stopped = watch.feed(piece)
        shown += more
        if stopped:
            return shown, True
    return shown + watch.rest(), False


@given(_STOPS, st.lists(_TEXT, max_size=12))
def test_what_is_shown_ends_where_a_stop_string_begins(stops: list[str], pieces: list[str]) -> None:
    text = "".join(pieces)
    shown, stopped = _shown(stops, pieces)
    assert text.startswith(shown)
    assert not any(stop in shown for stop in stops)
    assert stopped == any(stop in text for stop in stops)
    if stopped:
        assert any(text[len(shown) :].startswith(stop) for stop in stops)
    else:
        assert shown == text


def test_text_that_cannot_become_a_stop_string_is_shown_at_once() -> None:
    watch = StopStrings(["<end>"])
    assert watch.feed("a <b") == ("a <b", False)
    assert watch.feed(" c <e") == (" c ", False)
    assert watch.feed("lse") == ("<else", False)
