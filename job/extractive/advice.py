"""How grave an issue is and what to do about it, by the words that name it. Pure.

Invariant: a suggestion is made of the kind of failure and the record's own cause; the harm is that
to people, then to everybody's work, then to one user's.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from job.extractive.grammar import either, words
from job.extractive.spans import fold
from job.instructions import Language
from job.records import Basis, Severity


def _any(english: str, chinese: str) -> re.Pattern[str]:
    return re.compile(either(rf"\b{words(english)}\b", words(chinese)))


_CRITICAL = _any(
    r"""
    data_loss los(?:t|es|ing)_(?:\w+_){0,3}(?:data|records?|files?|work|everything) outage everyone
    everybody all_(?:of_)?(?:our_|the_)?(?:users|customers|services?|sites?|systems?) nobody_can
    entire completely_down (?:is|are|was|were|went|goes)_down breach\w* hack(?:ed|ers?) stolen
    leaked exposed vulnerab\w+ injur\w+ bleeding unconscious on_fire caught_fire smoke explod\w+
    electrocut\w+ poison\w* dangerous fatal
    """,
    r"""
    数据(?:全部)?(?:丢|没)
    全部(?:用户|人|客户|服务|系统|数据|瘫|中断|丢) 全体 所有(?:用户|人|客户|服务|系统) 大面积 宕机
    瘫痪 泄露 泄漏 被盗
    入侵 被黑 受伤 起火 着火 冒烟 触电 漏电 中毒 爆炸 危险 晕倒 出血
    """,
)
CERTAIN = 3
"""The weight of failure (see `Tone`) of what plainly failed."""
_CRASH = _any(r"crash\w* panic\w* died killed", "崩溃 死机")
_MONEY = _any(
    r"charg(?:ed|es?) billed debited refund\w* money pa(?:y|id|yment)\w* overcharg\w* deducted",
    "扣[了款费钱我两] 多收 退款 退钱 付款 的钱 收费 押金",
)
_REPEATED = _any(
    r"""
    again keeps? every_time always repeatedly (?:second|third|fourth|fifth)_time times_in_a_row
    """,
    "又 反复 每次 多次 总是 老是 一直 频繁 第[二三四五六七八九]",
)
_IMPOSSIBLE = _any(
    r"""
    cannot can't can_not couldn't could_not unable impossible unusable lost gone vanish\w*
    disappear\w* missing stuck refus\w+ denied rejected unauthori[sz]ed
    """,
    """
    无法 不能 打不开 [登连进用付开]不[上了去通] 丢失 不见了 消失 没了 拒 卡死
    """,
)
_HIGH = (_MONEY, _REPEATED, _IMPOSSIBLE)
_LOW = _any(
    r"""
    slow\w* sluggish lag\w* a_(?:bit|little) slightly minor somewhat typo colou?r font icon cosmetic
    alignment spelling wording
    """,
    "有点 有些 稍 略 偏 慢 错别字 排版 颜色 字体 图标",
)


def severity(said: str, failure: int, level: str | None, rating: float | None) -> Severity:
    """How much harm the words, the weight of failure (see `Tone`), the log level and the rating
    (of five) tell of."""
    low = fold(said)
    if level == "critical" or (failure and _CRITICAL.search(low)):
        return "critical"
    if _CRASH.search(low):
        return "critical" if level == "error" else "high"
    if level == "warning":
        return "medium" if failure == CERTAIN else "low"
    if rating is not None and rating >= 4:
        return "low"
    if level == "error" or (failure and any(pattern.search(low) for pattern in _HIGH)):
        return "high"
    if failure < 2 or _LOW.search(low):
        return "low"
    return "medium"


class _Advice(NamedTuple):
    """What to do where the words name such a failure; `{it}` is the cause."""

    names: re.Pattern[str]
    text: dict[Language, str]


_ADVICE = (
    _Advice(
        _any(
            r"""
            denied unauthori[sz]ed not_authori[sz]ed forbidden permission not_(?:permitted|allowed)
            privilege
            """,
            "权限 未授权 被禁 禁止",
        ),
        {
            "en": "Check who may do this and grant or explain what is missing: {it}",
            "zh": "核对操作权限，补齐授权或说明限制：{it}",
        },
    ),
    _Advice(
        _any(r"breach hacked stolen leaked exposed vulnerab\w+ fraud\w*", "泄露 被盗 入侵 诈骗"),
        {
            "en": "Contain it first, then find how far it reaches: {it}",
            "zh": "先止损并查清影响范围：{it}",
        },
    ),
    _Advice(
        _any(
            r"""
            exceed\w* (?:is|are|was|were|became|got|disk)_full quota limit insufficient not_enough
            ran_out running_out out_of_(?:memory|space|stock|disk) overflow\w* throttl\w* shortage
            short_of exhausted no_free used_up none_(?:is_)?(?:idle|free|left)
            no_\w+_connection_(?:was_)?(?:free|available|within|in_time)
            """,
            "不足 不够用 不够了 超出 超限 溢出 耗尽 用完 用光 占满 抢完 [已写装塞存爆]满 达上限"
            " 到了上限 为零 缺货 拿不到[^，。]{0,4}连接 没有(?:拿|等)到[^，。]{0,6}连接",
        ),
        {
            "en": "Raise what ran short or lower the demand, and warn earlier: {it}",
            "zh": "扩充不足的资源或降低用量，并提前预警：{it}",
        },
    ),
    _Advice(
        _any(r"expired? expires lapsed", "过期 到期 失效(?!率)"),
        {
            "en": "Renew it and remind before it runs out: {it}",
            "zh": "及时更新，并在到期前提醒：{it}",
        },
    ),
    _Advice(
        _any(
            r"outdated out_of_date not_(?:been_)?updated long_ago", "过时 没有?更新 老黄历 未更新"
        ),
        {
            "en": "Bring it up to date, and name who keeps it so: {it}",
            "zh": "更新内容，并明确由谁持续维护：{it}",
        },
    ),
    _Advice(
        _any(
            r"charg\w+ bill(?:ed|ing|s)? refund\w* money overcharg\w* deducted",
            "扣[款费钱了] 多收 退款 乱?收费 押金 的钱",
        ),
        {
            "en": "Check the amounts, pay back what is owed and close the gap: {it}",
            "zh": "核对金额，退还应退款项并堵住漏洞：{it}",
        },
    ),
    _Advice(
        _any(
            r"""
            connection_refused refused_(?:the_)?connection unreachable unavailable offline
            disconnect\w* (?:is|are|was|were|went)_down unresponsive no_connection no_route
            (?:contacting|connect(?:ing)?_to|reach(?:ing)?)
            """,
            "拒绝连接 连接[^，。]{0,4}拒绝 连不[上通] 断[开线网连] 离线 不可用 无响应 掉线"
            " 打不通 不可达",
        ),
        {
            "en": "Check that the other side is up and reachable, and plan for its absence: {it}",
            "zh": "检查对端是否可用、可达，并准备失联时的预案：{it}",
        },
    ),
    _Advice(
        _any(
            r"time[sd]?[_-]?outs? slow\w* lag\w* sluggish late delay\w*"
            r" waited waiting overdue forever",
            "超时 (?:太|很|好|更|变)慢 慢查询 卡顿 延[误迟] 等了 排队 迟到 迟迟 拖 晚点 逾期 积压",
        ),
        {
            "en": "Measure where the time goes and set a limit that is watched: {it}",
            "zh": "定位耗时环节，设定时限并加以监控：{it}",
        },
    ),
    _Advice(
        _any(
            r"no_such lost vanish\w* disappear\w* went_missing",
            "丢失 不见了 遗失 弄丢 找不到 缺失 未找到",
        ),
        {
            "en": "Find where it went, restore it and keep it from getting lost: {it}",
            "zh": "查明去向，尽快找回并防止再次丢失：{it}",
        },
    ),
    _Advice(
        _any(
            r"""
            nobody_(?:answer|repl|respond|came|help)\w* no_one_(?:answer|repl|respond|came|help)\w*
            never_(?:repl|answer)\w* no_(?:reply|response) unanswered ignored rude\w* unhelpful
            unprofessional shrug\w*
            """,
            "[没无]人(?:理|管|接|回|应|处理|答|问) 不理 不回复 态度 敷衍 推脱 推诿",
        ),
        {
            "en": "Name who answers such requests and within what time: {it}",
            "zh": "明确由谁在多长时间内答复并跟进：{it}",
        },
    ),
    _Advice(
        _any(
            r"crash\w* panic\w* exception freez\w+ frozen hangs hung",
            "(?<!我)(?<!我都)(?<!心态)崩溃 闪退 死机 卡死 异常",
        ),
        {
            "en": "Reproduce it, fix the fault and cover it with a test: {it}",
            "zh": "复现并修复该故障，补上相应测试：{it}",
        },
    ),
    _Advice(
        _any(
            r"""
            wrong\w* incorrect\w* mistake\w* invalid mismatch\w* inaccurate inconsistent
            duplicate\w* twice made[_ ]up mak(?:es|ing)_things_up
            """,
            "错误 出错 [弄搞写发送上算记认配装拿找]错 错了 不一致 不符 不准 有误 重复"
            " 无效 编造 瞎编 假的",
        ),
        {
            "en": "Correct it, and check the step that let it through: {it}",
            "zh": "更正结果，并核查放行它的环节：{it}",
        },
    ),
    _Advice(
        _any(
            r"broken? damag\w+ crack\w* torn leak\w* worn_out defect\w* faulty dirty scratch\w*",
            "[弄摔压碰打]坏 坏了 破[损了洞裂] 碎了 断裂 开裂 漏[水油电气液] 很?脏 磨损"
            " 脱落 划痕 故障",
        ),
        {
            "en": "Repair or replace it, and inspect the others of its kind: {it}",
            "zh": "维修或更换，并排查同类情况：{it}",
        },
    ),
)
_OTHERWISE: dict[Basis, dict[Language, str]] = {
    "stated": {"en": "Remove the stated cause: {it}", "zh": "针对所述原因整改：{it}"},
    "inferred": {"en": "Find out why this happens: {it}", "zh": "查明发生原因：{it}"},
}


def suggestion(event: str, cause: str | None, basis: Basis, language: Language) -> str:
    """What to do about it, by the kind of failure that the cause, else the event, names. `cause`:
    None where the record gives none."""
    it = cause or event
    for said in (cause, event):
        low = fold(said or "")
        for advice in _ADVICE:
            if advice.names.search(low):
                return advice.text[language].replace("{it}", it)
    return _OTHERWISE[basis if cause else "inferred"][language].replace("{it}", it)


Harm = Literal["everybody", "crash", "money", "impossible", "repeated"]

HARM_WORDS: dict[Harm, dict[Language, str]] = {
    "everybody": {
        "en": "harm to people, data or everybody’s work",
        "zh": "人身、数据或全体用户受损",
    },
    "crash": {"en": "a crash", "zh": "崩溃"},
    "money": {"en": "money", "zh": "钱款"},
    "impossible": {"en": "something that could not be done at all", "zh": "事情完全办不成"},
    "repeated": {"en": "a failure that comes again and again", "zh": "反复发生"},
}
_HARMS: tuple[tuple[Harm, re.Pattern[str]], ...] = (
    ("everybody", _CRITICAL),
    ("crash", _CRASH),
    ("money", _MONEY),
    ("impossible", _IMPOSSIBLE),
    ("repeated", _REPEATED),
)


def harms(said: str) -> list[Harm]:
    """The kinds of harm that the words tell of, the gravest first."""
    low = fold(said)
    return [harm for harm, pattern in _HARMS if pattern.search(low)]
