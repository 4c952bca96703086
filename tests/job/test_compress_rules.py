"""A text of instructions, its rules, and the text again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.compress.rules import Piece, join, split

TEXT = """\
# Rules for the shop team

Please note that a refund which takes longer than 3 days is high, never medium. Ignore the health
checks of the load balancer, e.g. the page /healthz of it. 24 hours is the limit of all of them! \
请忽略所有压测流量，除非错误超过 5%。支付失败的订单一律算作 critical。
- [ ] "order pending" is a normal state of an order
  unless it lasts at least 30 minutes.
1. One retry of a payment is normal and no problem.
（2）同一笔订单两次以上重试的，一律算作问题
三、内部测试账号的反馈和投诉都不计入问题
Levels are said below:
| level | when it is given to a record of the day |

    code = "is never changed by anybody, whoever it is"

```
code is never changed by anybody, whoever it is. It stays.
```
{"rules": "are never read out of JSON by anybody, whoever it is"}
A line about the consumers of Kafka that is long enough
Another line without a mark at its end, long enough too
"""


def rules(text: str) -> list[str]:
    return [piece.line for piece in split(text) if piece.rule]


def test_sentences_and_items_of_lists_are_rules_in_both_languages() -> None:
    assert rules(TEXT) == [
        "Please note that a refund which takes longer than 3 days is high, never medium",
        "Ignore the health checks of the load balancer, e.g. the page /healthz of it",
        "24 hours is the limit of all of them",
        "请忽略所有压测流量，除非错误超过 5%",
        "支付失败的订单一律算作 critical",
        '"order pending" is a normal state of an order unless it lasts at least 30 minutes',
        "One retry of a payment is normal and no problem",
        "同一笔订单两次以上重试的，一律算作问题",
        "内部测试账号的反馈和投诉都不计入问题",
        "A line about the consumers of Kafka that is long enough",
        "Another line without a mark at its end, long enough too",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "# a heading of a document that goes on for quite a while",
        "These are the rules that all of us have to keep to:",
        "以下是本团队对于每一条记录都必须遵守的规则：",
        "- short one",
        '[{"a": "list of JSON that goes on for quite a while"}]',
        "",
        "a rule that goes on and on " * 60,
    ],
)
def test_what_is_no_rule_is_not_asked_about(text: str) -> None:
    assert rules(text) == []


@given(
    st.text(alphabet=st.sampled_from("ab A.!?。；：:-*•1(（）)一\n\t `#|{[]}，e.g"), max_size=120)
)
def test_the_pieces_are_the_text(text: str) -> None:
    pieces = split(text)
    assert join(pieces, {}) == text
    assert all(piece.text for piece in pieces)


@given(st.text(max_size=200))
def test_the_pieces_of_any_text_are_the_text(text: str) -> None:
    assert join(split(text), {}) == text


def test_only_what_is_given_another_text_changes() -> None:
    pieces = split(TEXT)
    places = [place for place, piece in enumerate(pieces) if piece.rule]
    short = {place: f"<{n}>" for n, place in enumerate(places)}
    changed = join(pieces, short)
    assert changed.count("<") == len(places)
    assert "- [ ] <5>.\n1. <6>.\n（2）<7>\n三、<8>\n" in changed
    assert "code is never changed by anybody, whoever it is. It stays.\n" in changed


def test_a_rule_is_one_line_whatever_it_was_broken_into() -> None:
    assert Piece("one\n   two\tthree", rule=True).line == "one two three"


def test_a_very_long_line_is_split_in_no_time() -> None:
    text = "- " + "a refund, that is late " * 700 + "." + "(" * 500 + "1." * 500
    assert join(split(text), {}) == text
