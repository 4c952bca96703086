"""What a short form of a rule must not lose or add, in both languages."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job.compress.check import flaws
from job.compress.facts import facts
from serve.simulated_rules import shortened

FAITHFUL = [
    (
        "Please note that a refund which takes longer than 3 days is considered high, never medium",
        "Refund > 3 days: high, never medium",
    ),
    (
        "It is very important that you ignore all of the health checks of the load balancer",
        "Ignore load balancer health checks",
    ),
    (
        "If the same user has complained at least three times within one week, then the severity "
        "should be critical",
        "Same user complained ≥3 times within 1 week: critical",
    ),
    (
        'Records that contain the words "test account" or "load test" should always be normal',
        '"test account" or "load test": normal',
    ),
    (
        "An error of the service payments-api with the code E1042 is of medium severity only when "
        "it happens more than 5 times in 10 minutes",
        "payments-api E1042: medium only if > 5 times in 10 min",
    ),
    (
        "Complaints about delivery delays are not a problem unless the delay was more than two "
        "days or the customer is a VIP",
        "Delivery delay complaints: not a problem unless > 2 days or customer is VIP",
    ),
    (
        "You have to make sure that a payment of 1,000 dollars or more is never ignored",
        "Payment of $1000 or more: never ignored",
    ),
    (
        "请注意，支付超过三十秒的情况一律视为问题，除非用户已经取消",
        "支付超过30秒为问题，除非用户已取消",
    ),
    ("对于压测流量以及内部账号产生的报错，请不要当作问题", "压测流量、内部账号报错不算问题"),
    ("登录失败不超过 3 次的属于正常情况，超过 3 次则定为 medium", "登录失败≤3次正常，>3次 medium"),
    ("至少有百分之五的请求失败时才视为严重问题", "至少5%请求失败为严重问题"),
    ("仅统计付费用户的投诉，其他用户的投诉可以忽略", "仅统计付费用户投诉，其他用户可以忽略"),
]

CHANGED = [
    ("Retries of the search service are not a problem", "Search service retries: a problem"),
    ("Do not treat a login from a new device as high", "Login from a new device: high"),
    ("A refund later than 3 days is high", "A refund later than 5 days is high"),
    ("A refund later than 3 days is high", "A refund later than 3 hours is high"),
    ("A refund later than 3 days is high", "A refund later than 3 is high"),
    ("A refund later than 3 days is high", "A refund within 3 days is high"),
    ("A refund later than 3 days is high", "A refund later than 3 days is critical"),
    ("A refund later than 3 days is high", "A late refund is high"),
    ("Timeouts are normal unless a user complains", "Timeouts are normal if a user complains"),
    ("Timeouts are normal unless a user complains", "Timeouts are normal"),
    ("At least 5 failures are a problem", "At most 5 failures are a problem"),
    ("At least 5 failures are a problem", "5 failures are a problem"),
    ("Only paying customers count as affected", "Paying customers count as affected"),
    ("Paying customers count as affected", "Only paying customers count as affected"),
    ("Ignore everything except payment errors", "Ignore everything, payment errors too"),
    ("Payment errors are high, search errors are low", "Payment errors low, search errors high"),
    ("After 2 errors warn, after 9 errors stop", "After 9 errors warn, after 2 errors stop"),
    ('The state "order pending" is normal', "The state pending is normal"),
    ('The state "order pending" is normal', 'The state "order done" is normal'),
    ("Errors E1042 and E1043 are low", "Errors E1042 are low"),
    ("Errors E1042 are low", "Errors E1042 and E1043 are low"),
    ("Failures at Northwind are critical", "Failures at the partner are critical"),
    ("Failures at the partner are critical", "Failures at partner Northwind are critical"),
    ("Report timeouts, but not retries", "Report retries, but not timeouts"),
    ("Timeouts of the payment and of the search service are high", "Payment timeouts are high"),
    ("Ignore health checks, cron noise and load tests", "Ignore health checks and load tests"),
    ("Ignore health checks of the balancer", "Ignore health checks and complaints"),
    ("It is fine when the page is available", "It is fine when the page is unavailable"),
    ("It may be ignored when the user cancelled", "Ignore it when the user cancelled"),
    ("Sometimes slow answers are a problem", "All slow answers are a problem"),
    ("A failed payment is a problem", "A successful payment is a problem"),
    ("Errors before the release are normal", "Errors after the release are normal"),
    ("Users without a contract are low", "Users with a contract are low"),
    ("No refund takes more than one day", "A refund takes more than one day"),
    ("Feedback in Chinese about delivery is high", "涉及配送的中文反馈为 high"),
    ("Payment errors are high, search errors are low", "Search errors high, payment errors low"),
    (
        "A complaint about price is not a problem but one about quality is",
        "A complaint about quality is not a problem but one about price is",
    ),
    ("Latency over 2 s and under 5 s is low", "Latency under 2 s and over 5 s is low"),
    ("A retry more than 3 times in 1 hour is low", "A retry 3 times in more than 1 hour is low"),
    ("Orders that users cancelled are normal", "Orders that support cancelled are normal"),
    ("If both payment and refund fail it is high", "If payment or refund fails it is high"),
    ("Say 'driver', not 'courier'", "Say 'courier', not 'driver'"),
    ("称之为“骑手”，不要写“司机”", "称之为“司机”，不要写“骑手”"),
    ("投诉物流不算问题，投诉质量算问题", "投诉质量不算问题，投诉物流算问题"),
    ("用户取消的订单属于正常", "客服取消的订单属于正常"),
    ("重试不算问题", "重试算问题"),
    ("支付超时一律算问题，除非用户已取消", "支付超时一律算问题，用户已取消"),
    ("支付超时一律算问题，除非用户已取消", "支付超时一律算问题"),
    ("退款超时定为high", "退款超时定为low"),
    ("支付超时不算problem", "支付超时算problem"),
    ("状态为pending的not要上报", "状态为pending的要上报"),
    ("失败three次算问题", "失败two次算问题"),
    ("十分钟内失败超过 5 次为 high", "钟内失败超过 5 次为 high"),
    ("至少五次失败才算问题", "五次失败才算问题"),
    ("至少五次失败才算问题", "至少六次失败才算问题"),
    ("至少五次失败才算问题", "至多五次失败才算问题"),
    ("仅付费用户的投诉算问题", "付费用户的投诉算问题"),
    ("统计超时，不统计重试", "不统计超时，统计重试"),
    ("忽略健康检查、定时任务和压测流量", "忽略健康检查和压测流量"),
    ("不要忽略内部账号的报错", "忽略内部账号的报错"),
    ("登录失败超过 3 次为 high", "登录失败超过 3 次为 critical"),
    ("没有订单号的投诉为低", "有订单号的投诉为低"),
    ("退款超过三天算严重", "退款超过三小时算严重"),
    ("状态为“待支付”的订单属于正常", "状态为支付的订单属于正常"),
    ("禁止上报测试账号", "上报测试账号"),
]


@pytest.mark.parametrize(("rule", "short"), FAITHFUL)
def test_a_rule_said_in_fewer_words_passes(rule: str, short: str) -> None:
    assert flaws(rule, short) == []


@pytest.mark.parametrize(("rule", "short"), CHANGED)
def test_a_rule_that_says_something_else_is_found(rule: str, short: str) -> None:
    assert flaws(rule, short)


@pytest.mark.parametrize("rule", [rule for pair in (*FAITHFUL, *CHANGED) for rule in pair])
def test_a_rule_survives_itself_and_the_loss_of_fillers(rule: str) -> None:
    assert flaws(rule, rule) == []
    assert flaws(rule, shortened(rule)) == []
    assert flaws(rule, "") == ["it is empty"]


@pytest.mark.parametrize("rule", [rule for rule, _ in (*FAITHFUL, *CHANGED) if facts(rule).numbers])
def test_every_number_is_held(rule: str) -> None:
    for number in re.finditer(r"\d+", rule):
        without = rule[: number.start()] + rule[number.end() :]
        other = f"{rule[: number.start()]}{int(number[0]) + 1}{rule[number.end() :]}"
        assert flaws(rule, without)
        assert flaws(rule, other)


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ("30 seconds", "30 s"),
        ("30 seconds", "30秒"),
        ("thirty minutes", "30 min"),
        ("三十分钟", "30 minutes"),
        ("百分之五", "5 %"),
        ("five percent", "5%"),
        ("1,000 dollars", "$1000"),
        ("twice", "two times"),
        ("两次", "2 times"),
        ("一百二十元", "120 yuan"),
        ("1万元", "1 万元"),
        ("0.5 days", "half days"),
    ],
)
def test_a_number_is_one_in_every_notation(one: str, same: str) -> None:
    assert facts(one).numbers == facts(same).numbers != ()


@given(
    rule=st.sampled_from([rule for rule, _ in FAITHFUL]),
    added=st.sampled_from(
        ["not ", "never ", "only ", "unless ", "at least ", "7 ", "critical ", "VIPX ", "ERR_9 "]
    ),
    place=st.integers(0, 200),
)
def test_what_is_added_is_found(rule: str, added: str, place: int) -> None:
    gaps = [match.end() for match in re.finditer(r" |，|^", rule)]
    at = gaps[place % len(gaps)]
    more = f"{rule[:at]}{added}{rule[at:]}"
    if added.strip() not in rule:
        assert flaws(rule, more)


@given(rule=st.text(max_size=80), short=st.text(max_size=80))
def test_any_text_can_be_checked(rule: str, short: str) -> None:
    assert isinstance(flaws(rule, short), list)
    assert flaws(rule, rule) == []
