"""The words of an issue: clauses made short, a suggestion, a severity. Pure.

Invariant: an event or cause is what the record says with less around it (no greeting, alias, id),
never a word more; a suggestion is made of the kind of failure and the record's own cause.
"""

from __future__ import annotations

import re

from job.extractive.grammar import Grammar
from job.extractive.spans import fold, size
from job.instructions import Language
from job.mask import ALIAS
from job.records import Basis, Severity

LONGEST = 160
"""Characters of an event or cause: a clause, not a paragraph."""

_NOISE = re.compile(
    rf"{ALIAS.pattern}|\b[0-9a-f]{8}-[0-9a-f-]{20,}\b|\b0x[0-9a-f]+\b|"
    r"#\s?\d+|\[(?=[^\]]*[\d_])[^\]\s]*\]|\b(?=\w*\d)(?=\w*[a-z])[a-z0-9]+(?:_\w+){2,}\b|"
    r"(?<![\d.,:])\d{4,}(?![\d.,:]*\d|ms|\s?(?:ms|kb|mb|gb|%|元))|\b(?=[a-f]*\d)[0-9a-f]{12,}\b",
    re.IGNORECASE,
)
_FIELDS = re.compile(r"[\s,]+[\w.]+\s?=(?!=).*$", re.DOTALL)
_CLASS = re.compile(
    r"^(?:(?:[a-z_$][\w$]*\.)+[\w$]+|\w+(?:exception|error)):\s+(?=\S+\s+\S|[\u4e00-\u9fff])",
    re.IGNORECASE,
)
_TWICE = re.compile(r"\b(for|of|to|in|on|at|from|with|the) \1\b", re.IGNORECASE)
_SPACE = re.compile(r"\s+|\\n")
_EDGE = " \t,;:.!?，；：。！？、~～-–—()（）\"'“”|"


def tidy(part: str, rules: tuple[Grammar, ...]) -> str:
    """`part` without greetings, fillers, aliases and ids, as long as something remains."""
    part = _SPACE.sub(" ", part).strip(_EDGE)
    for pattern in (_CLASS, _FIELDS, _NOISE, _TWICE):
        shorter = pattern.sub(r"\1" if pattern is _TWICE else "", part)
        if size(shorter) >= 4:
            part = _SPACE.sub(" ", shorter).strip(_EDGE)
    for rule in rules:
        for _ in range(6):
            match = rule.leading.match(fold(part))
            if match is None or not match.end() or size(part[match.end() :]) < 4:
                break
            part = part[match.end() :].lstrip(_EDGE)
        match = rule.trailing.search(fold(part))
        if match is not None and size(part[: match.start()]) >= 4:
            part = part[: match.start()].rstrip(_EDGE)
    if len(part) > LONGEST:
        cut = part.rfind(" ", LONGEST // 2, LONGEST)
        part = part[: cut if cut > 0 else LONGEST].rstrip(_EDGE) + "…"
    return part


_CRITICAL = re.compile(
    r"\b(?:data loss|los(?:t|es|ing) (?:\w+ ){0,3}(?:data|records?|files?|work|everything)|outage|"
    r"everyone|everybody|all (?:of )?(?:our |the )?(?:users|customers|services?|sites?|systems?)|nobody can|"
    r"entire|completely down|(?:is|are|was|were|went|goes) down|breach\w*|hack(?:ed|ers?)|stolen|leaked|"
    r"exposed|vulnerab\w+|injur\w+|bleeding|unconscious|on fire|caught fire|smoke|explod\w+|electrocut\w+|"
    r"poison\w*|dangerous|fatal)\b|"
    r"数据(?:全部)?(?:丢|没)|全部|全体|所有(?:用户|人|客户|服务|系统)|大面积|宕机|瘫痪|泄露|泄漏|被盗|盗刷|入侵|被黑|"
    r"受伤|起火|着火|冒烟|触电|漏电|中毒|爆炸|危险|晕倒|出血"
)
_CRASH = re.compile(r"\b(?:crash\w*|panic\w*|died|killed)\b|崩溃|死机")
_HIGH = re.compile(
    r"\b(?:charg(?:ed|es?)|billed|debited|refund\w*|money|pa(?:y|id|yment)\w*|overcharg\w*|deducted|"
    r"again|keeps?|every time|always|repeatedly|(?:second|third|fourth|fifth) time|times in a row|"
    r"cannot|can't|can not|couldn't|could not|unable|impossible|unusable|lost|gone|vanish\w*|"
    r"disappear\w*|missing|stuck|refus\w+|denied|rejected|unauthori[sz]ed)\b|"
    r"扣[了款费钱我两]|多收|退款|退钱|付款|的钱|收费|押金|又|反复|每次|多次|总是|老是|一直|频繁|第[二三四五六七八九]|"
    r"无法|不能|打不开|[登连进用付开]不[上了去通]|丢失|不见了|消失|没了|拒|卡死"
)
_LOW = re.compile(
    r"\b(?:slow\w*|sluggish|lag\w*|a (?:bit|little)|slightly|minor|somewhat|typo|colou?r|font|icon|"
    r"cosmetic|alignment|spelling|wording)\b|有点|有些|稍|略|偏|慢|错别字|排版|颜色|字体|图标"
)


def severity(words: str, failure: int, level: str | None, rating: float | None) -> Severity:
    """How much harm the words, the log level (`error`, `warning`, ...) and the rating tell of."""
    low = fold(words)
    if level == "critical" or (failure and _CRITICAL.search(low)):
        return "critical"
    if _CRASH.search(low):
        return "critical" if level == "error" else "high"
    if level == "warning" or (rating is not None and rating >= 4):
        return "low"
    if level == "error" or (failure and _HIGH.search(low)):
        return "high"
    if failure < 2 or _LOW.search(low):
        return "low"
    return "medium"


_ADVICE: tuple[tuple[re.Pattern[str], dict[Language, str]], ...] = tuple(
    (re.compile(pattern), {"en": english, "zh": chinese})
    for pattern, english, chinese in (
        (
            r"\b(?:denied|unauthori[sz]ed|not authori[sz]ed|forbidden|permission|not (?:permitted|allowed)|"
            r"privilege)|权限|未授权|被禁|禁止",
            "Check who may do this and grant or explain what is missing: {it}",
            "核对操作权限，补齐授权或说明限制：{it}",
        ),
        (
            r"\b(?:breach|leak\w*|hacked|stolen|exposed|vulnerab\w+|fraud\w*)|泄露|被盗|盗刷|入侵|诈骗",
            "Contain it first, then find how far it reaches: {it}",
            "先止损并查清影响范围：{it}",
        ),
        (
            r"\b(?:time[sd]?[ -]?outs?|slow\w*|lag\w*|sluggish|late|delay\w*|wait\w*|overdue|forever)\b|"
            r"超时|慢|卡|延[误迟]|等了|排队|迟|拖|晚点|逾期",
            "Measure where the time goes and set a limit that is watched: {it}",
            "定位耗时环节，设定时限并加以监控：{it}",
        ),
        (
            r"\b(?:charg\w+|bill\w*|refund\w*|money|overcharg\w*|deducted|paid)\b|扣|多收|退款|收费|押金|的钱",
            "Check the amounts, pay back what is owed and close the gap: {it}",
            "核对金额，退还应退款项并堵住漏洞：{it}",
        ),
        (
            r"\b(?:exceed\w*|full|quota|limit|insufficient|not enough|ran out|out of|overflow\w*|throttl\w*|"
            r"shortage|lack\w*|empty|exhausted)\b|不足|不够|超出|超限|溢出|耗尽|用完|满了|缺",
            "Raise what ran short or lower the demand, and warn earlier: {it}",
            "扩充不足的资源或降低用量，并提前预警：{it}",
        ),
        (
            r"\b(?:expired?|expires|lapsed|outdated)\b|过期|到期|失效",
            "Renew it and remind before it runs out: {it}",
            "及时更新，并在到期前提醒：{it}",
        ),
        (
            r"\b(?:not found|no such|missing|lost|gone|vanish\w*|disappear\w*|does not exist)\b|"
            r"丢失|不见|消失|没了|找不|不存在|缺失|未找到",
            "Find where it went, restore it and keep it from getting lost: {it}",
            "查明去向，尽快找回并防止再次丢失：{it}",
        ),
        (
            r"\b(?:nobody|no one|never (?:repl|answer)\w*|no (?:reply|response|answer)|unanswered|ignor\w+|"
            r"rude\w*|unhelpful|unprofessional|shrug\w*)\b|没人|无人|不理|不回|态度|敷衍|推脱|推诿",
            "Name who answers such requests and within what time: {it}",
            "明确由谁在多长时间内答复并跟进：{it}",
        ),
        (
            r"\b(?:refused?|unreachable|unavailable|offline|disconnect\w*|(?:is|are|was|went) down|unresponsive|no connection)\b|"
            r"拒绝|连不|断[开线网]|离线|不可用|无响应|掉线|打不通",
            "Check that the other side is up and reachable, and plan for its absence: {it}",
            "检查对端是否可用、可达，并准备失联时的预案：{it}",
        ),
        (
            r"\b(?:crash\w*|panic\w*|exception|died|killed|freez\w+|frozen|hangs|hung|stuck)\b|崩溃|闪退|死机|卡死|异常",
            "Reproduce it, fix the fault and cover it with a test: {it}",
            "复现并修复该故障，补上相应测试：{it}",
        ),
        (
            r"\b(?:wrong\w*|incorrect\w*|mistake\w*|invalid|mismatch\w*|inaccurate|inconsistent|duplicate\w*|"
            r"twice)\b|错|不一致|不符|不对|不准|有误|重复|无效",
            "Correct it, and check the step that let it through: {it}",
            "更正结果，并核查放行它的环节：{it}",
        ),
        (
            r"\b(?:broken?|damag\w+|crack\w*|torn|leak\w*|worn|defect\w*|faulty|dirty|scratch\w*|dead)\b|"
            r"坏|破|裂|漏|碎|脏|磨损|脱落|划痕|故障",
            "Repair or replace it, and inspect the others of its kind: {it}",
            "维修或更换，并排查同类情况：{it}",
        ),
    )
)
_OTHERWISE: dict[Basis, dict[Language, str]] = {
    "stated": {"en": "Remove the stated cause: {it}", "zh": "针对所述原因整改：{it}"},
    "inferred": {"en": "Find out why this happens: {it}", "zh": "查明发生原因：{it}"},
}


def suggestion(event: str, cause: str, basis: Basis, language: Language) -> str:
    """What to do about it, by the kind of failure that the cause, else the event, names."""
    for words in (cause, event):
        low = fold(words)
        for pattern, advice in _ADVICE:
            if pattern.search(low):
                return advice[language].format(it=cause)
    return _OTHERWISE[basis][language].format(it=cause)
