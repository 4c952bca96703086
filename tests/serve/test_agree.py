"""Which questions ask the same: what differs in anything but the closed lists does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.cache_calibration import LANGUAGES, pairs_of, sets_of
from serve.cache.agree import LONGEST, agrees, form, meaning
from serve.cache.calibrate import measure
from serve.cache.thresholds import Language

LEAST_RECALL = 0.5
"""Of the plain rewordings of the set `fresh`; measured: 0.83 and 0.77."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_other_question_agrees(language: Language) -> None:
    wrong = [
        (pair.a, pair.b)
        for pair in pairs_of(language)
        if not pair.same and (agrees(pair.a, pair.b) or form(pair.a) == form(pair.b))
    ]
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_most_plain_rewordings_agree(language: Language) -> None:
    pairs = sets_of(language)["fresh"]
    assert measure(pairs, [agrees(pair.a, pair.b) for pair in pairs]).recall >= LEAST_RECALL


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hi, can you please explain how tides work?", "Explain how tides work"),
        ("Could you tell me who wrote Dracula?", "Who is the author of Dracula"),
        ("In Excel, how do I freeze a row?", "How can I freeze a row in Excel?"),
        ("What's your favourite colour?", "what is your favorite color"),
        ('How do I use "grep" here?', 'How can I use "grep" here?'),
        (
            "What is the difference between TCP and UDP?",
            "What's the difference between UDP and TCP",
        ),
        ("您好，请问怎么退票？谢谢", "如何退票"),
        ("TCP 和 UDP 有什么区别？", "UDP 和 TCP 的区别是什么？"),
        ("如何在 Excel 中求和？", "在Excel中怎么求和"),
        ("Ｌｉｎｕｘ怎么重命名文件?", "Linux 怎么重命名文件？"),
    ],
)
def test_another_way_to_say_it(one: str, other: str) -> None:
    assert agrees(one, other)
    assert agrees(other, one)


LETTERS = [
    "a b",
    "a  b",
    "a b ",
    "A b",
    "a b.",
    "a b?",
    "what's",
    "what is",
    "怎么做",
    "如何做",
    "a\nb",
]
OPENINGS = [": ", "：", "\n", '"', "`", "“", "(", "（", "[", "{", "《", "「", " 'x' ", "<b>"]


@pytest.mark.parametrize("opening", OPENINGS)
def test_what_follows_is_compared_to_the_letter(opening: str) -> None:
    for head in ("Is this right", "这样对吗"):
        texts = [f"{head}{opening}{text}" for text in LETTERS]
        assert all(agrees(a, b) == (a == b) for a in texts for b in texts)
    assert agrees(f"How do I fix this{opening}a b.", f"How can I fix this{opening}a b.")


ENGLISH = [
    "how",
    "I",
    "not",
    "copy",
    "from",
    "to",
    "Paris",
    "Lyon",
    "file",
    "in",
    "3",
    "3",
    "please",
]
CHINESE = ["从", "到", "北京", "上海", "不", "三", "怎么", "比", "大", "谁", "我", "请问"]
MARKS = [":", '"', "'", "-", "《", "》", "\n", ".", "?"]
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from([*ENGLISH, *CHINESE, *MARKS]), max_size=12).map(" ".join),
)


@settings(max_examples=60)
@given(TEXTS, TEXTS)
def test_agreeing_is_mutual_and_an_equal_form_agrees(one: str, other: str) -> None:
    assert agrees(one, one)
    assert agrees(one, other) == agrees(other, one)
    if form(one) == form(other):
        assert agrees(one, other)


PLAIN = st.lists(
    st.sampled_from(["Paris", "Lyon", "not", "and", "or", "3", "a", "the"]), min_size=1
)


@settings(max_examples=60)
@given(PLAIN, PLAIN)
def test_other_words_or_another_order_or_number_of_them_is_another_question(
    one: list[str], other: list[str]
) -> None:
    asked, too = (f"How do I get {' '.join(words)}?" for words in (one, other))
    assert agrees(asked, too) == (one == other)


@pytest.mark.parametrize(
    "text",
    ["", " ", "?", "：", "\n\n", "《》", "a" * 100_000, "不" * 1_000, "-" * 500, "谢谢", "please"],
)
def test_odd_texts_are_read(text: str) -> None:
    assert meaning(text) == meaning(text)
    assert not agrees(text, "How tall is Mount Everest?")


def test_of_a_long_question_only_an_equal_one_agrees() -> None:
    text = "What is " + "very " * (LONGEST // 5) + "far?"
    assert agrees(text, text)
    assert not agrees(text, text.removesuffix("?"))
