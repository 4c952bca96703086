"""Rules of the built-in analyst, each by the smallest text that shows it."""

from __future__ import annotations

import pytest

from job.extractive import MODEL, NOTE, analyse
from job.extractive.wording import tidy
from job.records import Kind
from tests.job.extracting import only_issue, record


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("No errors, nothing missing, 0 failed", "normal"),
        ("The error was fixed within the hour", "normal"),
        ("The error is still not fixed", "problem"),
        ("If it fails, the job is tried again", "normal"),
        ("未发现异常，失败 0 项", "normal"),
        ("故障已修复", "normal"),
        ("故障仍未修复", "problem"),
        ("如果失败会自动重试", "normal"),
    ],
)
def test_denied_repaired_and_supposed_failures_are_none(text: str, outcome: str) -> None:
    assert analyse(record(text, "operation"), "en").outcome == outcome


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Not bad at all", "positive"),
        ("No complaints, could not be happier", "positive"),
        ("Not great, would not recommend", "problem"),
        ("Thanks for nothing", "problem"),
        ("不错，挑不出毛病", "positive"),
        ("不好用，不推荐", "problem"),
        ("！？", "unclear"),
        ("🙂🙂", "unclear"),
    ],
)
def test_feedback_is_read_with_its_negations(text: str, outcome: str) -> None:
    assert analyse(record(text), "en").outcome == outcome


def test_praise_with_a_complaint_is_a_problem_about_the_complaint() -> None:
    answer = analyse(record("The soup was wonderful, but we waited an hour for it."), "en")
    assert answer.outcome == "problem"
    assert only_issue(answer).event == "we waited an hour for it"


def test_a_review_can_have_several_problems() -> None:
    text = (
        "The lift is broken. Staff were lovely. Also the towels are dirty, but I like the view. "
        "However, the bill was wrong."
    )
    answer = analyse(record(text), "en")
    assert [issue.event for issue in answer.issues] == [
        "The lift is broken",
        "the towels are dirty",
        "the bill was wrong",
    ]


def test_of_two_sentences_about_one_problem_the_one_that_says_why_is_taken_once() -> None:
    text = "The lift is stuck. They repaired the door, but the lift is stuck because of frost."
    issue = only_issue(analyse(record(text), "en"))
    assert (issue.event, issue.cause) == ("the lift is stuck", "frost")


def test_a_rating_decides_where_words_leave_it_open() -> None:
    text = "The blue one, from the shop in the square."
    assert analyse(record(text, rating=1), "en").outcome == "problem"
    assert analyse(record(text, rating=5), "en").outcome == "positive"
    assert analyse(record(text), "en").outcome == "normal"
    assert analyse(record("Lovely, but it broke on day two", rating=5), "en").outcome == "problem"


@pytest.mark.parametrize(
    ("text", "event", "cause"),
    [
        (
            "action=export errorCode=E42 errorMessage=quota reached today requestId=7",
            "export: E42",
            "quota reached today",
        ),
        (
            '{"operation": "export", "status": "failed", "reason": "quota reached"}',
            "export: failed",
            "quota reached",
        ),
        (
            '"POST /orders HTTP/1.1" 502 17',
            "POST /orders: 502 Bad Gateway",
            None,
        ),
    ],
)
def test_named_fields_and_statuses_tell_of_failures(
    text: str, event: str, cause: str | None
) -> None:
    issue = only_issue(analyse(record(text, "operation"), "en"))
    assert (issue.event, issue.cause) == (event, cause)


@pytest.mark.parametrize(
    "text",
    [
        "action=export status=ok errorCode=0 error=null failures=0",
        '{"error": null, "status": 200, "isDefault": false}',
        "GET /orders 200 12ms",
        "exit code 0",
    ],
)
def test_fields_that_say_none_are_no_failure(text: str) -> None:
    assert analyse(record(text, "operation"), "en").outcome == "normal"


def test_the_level_decides_how_strong_the_words_must_be() -> None:
    for level, text, outcome in [
        ("error", "shelf 4", "problem"),
        ("warning", "shelf 4 replaced", "normal"),
        ("warning", "shelf 4 is late", "problem"),
        ("info", "shelf 4 is late", "normal"),
        ("info", "failed to move shelf 4", "problem"),
    ]:
        assert analyse(record(text, "operation", level), "en").outcome == outcome, (level, text)


def test_thread_logger_and_ids_are_no_part_of_an_event() -> None:
    text = (
        "[worker 3] a.b.Mover: Failed to move shelf_00_4711_9 for 99 seconds trace=fb7a80 pod=m-1"
    )
    issue = only_issue(analyse(record(text, "operation", "error"), "en"))
    assert issue.event == "Failed to move for 99 seconds"


def test_severity_follows_the_harm() -> None:
    for text, level, severity in [
        ("Smoke came out and the fuse failed", None, "critical"),
        ("The service is down for all users", "error", "critical"),
        ("Failed to move shelf 4", "error", "high"),
        ("It broke again, for the third time", None, "high"),
        ("The lid is damaged", None, "medium"),
        ("The page is a bit slow", None, "low"),
        ("Failed to move shelf 4", "warning", "medium"),
        ("Shelf change detected", "warning", "low"),
    ]:
        kind: Kind = "operation" if level else "feedback"
        assert only_issue(analyse(record(text, kind, level), "en")).severity == severity, text


def test_the_suggestion_is_in_the_language_of_the_report() -> None:
    one = record("Failed to open the gate: permission denied", "operation")
    english, chinese = (only_issue(analyse(one, language)) for language in ("en", "zh"))
    assert english.suggestion == (
        "Check who may do this and grant or explain what is missing: permission denied"
    )
    assert chinese.suggestion == "核对操作权限，补齐授权或说明限制：permission denied"


def test_it_says_that_no_language_model_was_used() -> None:
    assert MODEL == "extractive"
    assert "No language model" in NOTE["en"]
    assert "未使用语言模型" in NOTE["zh"]


@pytest.mark.parametrize(
    ("level", "text", "outcome"),
    [
        ("info", "Retrying connect to server: a:8030. Already tried 0 time(s)", "problem"),
        ("info", "retry policy is fixed sleep", "normal"),
        ("info", "正在重试，第 3 次重试", "problem"),
        ("warning", "Address change detected. Old: a/1 New: b/2", "problem"),
        ("warning", "No address change detected", "normal"),
        ("info", "Address change detected. Old: a/1 New: b/2", "normal"),
    ],
)
def test_what_a_program_does_only_after_a_failure_tells_of_one(
    level: str, text: str, outcome: str
) -> None:
    assert analyse(record(text, "operation", level), "en").outcome == outcome


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the app crashed during upload, user u-1689", "the app crashed during upload"),
        ("the refund is missing for order SO84191827", "the refund is missing"),
        ("上传照片时崩溃，用户 u-1357", "上传照片时崩溃"),
        ("report from attempt_1445_0020_m_1_0: no route", "report: no route"),
        ("Order SO84191827 was charged twice", "Order was charged twice"),
        ("Order SO84191827 (red lamp) was charged twice", "Order was charged twice"),
        ("Verification text to u-1481 in Lyon failed", "Verification text in Lyon failed"),
        ("Task: attempt_1445_0020_m_1_0 - exited at once", "Task exited at once"),
        ("用户 u-1257 的订单提交失败", "用户的订单提交失败"),
        ("短信发送失败，用户 u-1059，归属地沈阳", "短信发送失败，归属地沈阳"),
        ("Cannot assign shelf Shelf: [ShelfId: shelf_14_02_01, Hall: 7", "Cannot assign shelf"),
        (
            "Thread Thread[eventHandlingThread,5,main] threw an Exception",
            "Thread threw an Exception",
        ),
        ("container memory less than required <memory:1024", "container memory less than required"),
        ("latency < 5 ms is not reached", "latency < 5 ms is not reached"),
        ("no room (of 5 GB) was left", "no room (of 5 GB) was left"),
    ],
)
def test_an_id_leaves_no_hole(text: str, words: str) -> None:
    assert tidy(text, ()) == words


@pytest.mark.parametrize(
    "text",
    [
        "user: 天坛在哪里？\nassistant: 在北京。\nuser: 那附近还有什么不错的景区吗？",
        "user: 天坛在哪里？\nassistant: 在北京。\nuser: 那挺好的。",
        "user: When is it open?\nassistant: At nine.\nuser: Perfect. Have a great day!",
        "user: Which shop is the best?\nassistant: The one in Lyon.",
    ],
)
def test_a_question_a_wish_and_an_assent_are_no_praise(text: str) -> None:
    assert analyse(record(text, "conversation"), "en").outcome == "normal"


def test_what_is_praised_is_said_and_not_what_stands_beside_it() -> None:
    for text, said in [
        ("Bought it last month. Full marks for delivery!", "Full marks for delivery"),
        ("店员推荐说这款是综合口味。味道非常好，满意。", "味道非常好"),
    ]:
        assert only_issue(analyse(record(text, rating=5), "en")).event == said


@pytest.mark.parametrize(
    "text",
    [
        "user: Embrace the role of Ann in our conversation.\nassistant: Of course.\n"
        "user: Let us grab dinner in town.\nassistant: The last train was late.",
        "user: Could you write a story?\nassistant: Sure!\n"
        "user: Now, do the same task again.\nassistant: The gate was broken.",
    ],
)
def test_what_comes_after_a_task_is_about_the_task(text: str) -> None:
    assert analyse(record(text, "conversation"), "en").outcome == "normal"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("大连机房无人机订单创建失败，因为空闲连接为零", "扩充不足的资源"),
        ("一道菜转半圈就没了，上菜错误", "更正结果"),
        ("包裹卡在分拣中心好几天没动了", "查明发生原因"),
        ("菜都不错就是量太少，服务员没人理", "明确由谁"),
        ("老板有没有吃过啊？简直我都崩溃", "查明发生原因"),
        ("保存失败：连接被拒绝连接", "检查对端"),
        ("No route to host, failed on socket timeout", "检查对端"),
        ("证书已过期，打不开页面", "及时更新"),
        ("助手说的规定早就过时了，是错误的", "更新内容"),
    ],
)
def test_advice_fits_what_is_said(text: str, advice: str) -> None:
    suggestion = only_issue(analyse(record(text, lang="zh"), "zh")).suggestion
    assert suggestion is not None
    assert suggestion.startswith(advice)


@pytest.mark.parametrize(
    ("text", "rating", "outcome"),
    [
        ("Worst app ever. It charged me twice and support ignored me.", 5, "problem"),
        ("太差了，扣了两次钱，一直不退款", 5, "problem"),
        ("二十分钟就修好了漏水，走的时候还把地擦了。", 5, "positive"),
        ("Great, but the box was a bit dented", 5, "positive"),
        ("Excellent service, love it", 1, "positive"),
    ],
)
def test_words_that_only_complain_outweigh_the_stars(
    text: str, rating: float, outcome: str
) -> None:
    answer = analyse(record(text, rating=rating), "en")
    assert answer.outcome == outcome
    if outcome == "problem":
        assert answer.issues[0].severity == "high"
