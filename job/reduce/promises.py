"""What an assistant says it has done or will do, and what an entry of a log is about. Pure.

Invariant: a promise is a span of a turn that is the assistant's, word for word; where turns name
no speaker, a promise is known by its words alone. A question whether it was done, and the words
that it was not, are no promise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_SPEAKER = re.compile(
    r"^[ \t]*(?:(?P<user>user|human|customer|client|visitor|用户|客户|顾客|访客|买家)"
    r"|assistant|ai|bot|agent|support|chatgpt|gpt|model|system|tool|客服|助手|坐席|机器人|商家|卖家|系统)"
    r"[^\n:：]{0,12}[:：]\s*"
)
_ENDS = re.compile(r"[。！？!?；;]|\.(?=\s)|$")
_LONGEST = 200
"""Characters of a promise that are quoted."""
_UNSAID = re.compile(
    r"是否|有没有|如果|若|要是|尚未|还没|并未|未能|无法|不能|没有|吗|\?|？|\bif\b|\bwhether\b|\bunless\b"
    r"|\bnot\b|n't\b|\bunable\b|\bcannot\b|\bfailed\b|\bonce\b"
)
"""In the same sentence: it is asked, conditional, or denied."""

_DONE = (
    r"已经?(?:成功)?(?:为|给|帮|替)?(?:您|你|用户|客户)?"
    r"(?:成功|安排|申请|办理|完成|发起|提交)?(?:了)?"
)
_WILL = r"(?:将会?|会|马上|立即|立刻|稍后)(?:为|给|帮|替)?(?:您|你)?(?:安排|办理)?"
_I_DID = (
    r"\b(?:i|we)(?:'ve| have)?(?: just| now| already| successfully)?(?: gone ahead and)? {}"
    r"|\b(?:has|have|had)(?: now| just| already)? been(?: successfully)? {}"
    r"|\b(?:is|are|was|were)(?: now)? successfully {}"
)
_NEAR = r"(?:[^.\n]|\.(?=\S)){0,50}?"
"""Some words of the same sentence."""


class _Topic(NamedTuple):
    """How a promise about it is worded, and by which words a log speaks of it.

    `done`: Chinese verbs after "已为您"; `verbs` and `things`: what was done to what in English
    ("I have issued the refund", "it has been issued"); `also`: other wordings.
    """

    done: str
    verbs: str
    things: str
    also: str
    about: str

    def said(self) -> str:
        """A pattern of a promise."""
        did = _I_DID.replace("{}", f"(?:{self.verbs})")
        english = rf"(?:{did})\b{_NEAR}\b(?:{self.things})|\b(?:{self.things})\b{_NEAR}(?:{did})"
        return rf"{_DONE}(?:{self.done})|{self.also}|{english}"


_TOPICS = (
    _Topic(
        done=r"(?:全额|原路|将|把)?(?:[^\n。，,？！]{0,8})?(?:退款|退费|退还|退回|退给)",
        verbs="issued|processed|initiated|completed|approved|sent|made|refunded",
        things="refunds?|money back",
        also=rf"{_WILL}(?:全额|原路)?(?:退款|退费|退还|退回)"
        r"|退款(?:已经?|成功|将在?|会在?)[^\n。]{0,12}(?:到账|退回|成功|完成|处理)"
        r"|\b(?:i|we)(?:'ve| have)? (?:just |already )?refunded\b"
        r"|\brefund (?:is|was) (?:complete|on its way)"
        r"|\b(?:will|you'll) (?:be |get |receive |have )?"
        r"(?:refunded|(?:a|the|your)(?: full)? refund)",
        about=r"refund|reimburse|revers(?:al|e)|charge-?back|credit back"
        r"|退款|退费|退还|退回|返还|冲正",
    ),
    _Topic(
        done="发货|发出|寄出|补发|配送|派送|送达|送到",
        verbs="shipped|dispatched|delivered|sent out|resent",
        things="orders?|parcels?|packages?|items?|replacements?|shipments?",
        also=r"(?:将|会|预计|保证)(?:在|于)?[^\n。]{0,16}(?:送达|送到|到货|发货|发出)"
        r"|\bwill (?:be (?:delivered|shipped|dispatched)|arrive|ship)\b",
        about=r"deliver|ship(?:ment|ping|ped)?\b|dispatch|parcel|courier|logistics|fulfil|warehouse"
        r"|发货|配送|派送|物流|快递|包裹|运单|出库|仓库",
    ),
    _Topic(
        done="取消|撤销|退订|解约",
        verbs="cancell?ed|revoked|terminated",
        things="orders?|subscriptions?|bookings?|reservations?|memberships?|plans?|it",
        also=r"取消成功",
        about=r"cancel|unsubscri|revok|terminat|取消|撤销|退订|解约",
    ),
    _Topic(
        done="重置|解锁|恢复|开通|激活|启用|修改|更新|注销|绑定|解绑",
        verbs="reset|unlocked|restored|activated|enabled|updated|changed|deleted|recovered",
        things="accounts?|passwords?|profiles?|address(?:es)?|settings?|plans?|access|data",
        also=r"(?:重置|解锁|激活|开通)成功",
        about=r"account|password|profile|unlock|activat|login|permission|address"
        r"|账号|账户|密码|解锁|激活|登录|权限|资料|地址|恢复",
    ),
    _Topic(
        done="付款|支付|扣款|充值|到账|开票|开具",
        verbs="charged|credited|paid|processed|received|applied",
        things="payments?|invoices?|credits?|balance|coupons?|discounts?",
        also=r"(?:付款|支付|充值)(?:已经?)?(?:成功|到账|完成)"
        r"|\bpayment (?:has gone|went) through\b",
        about=r"pay(?:ment|out)?\b|charge\b|billing|invoice|gateway|wallet|balance|coupon|credit\b"
        r"|支付|付款|扣款|充值|账单|发票|余额|优惠券",
    ),
    _Topic(
        done="发送|寄送|推送|通知",
        verbs="sent|emailed|texted|forwarded",
        things="e-?mails?|codes?|links?|messages?|sms|confirmations?|notifications?|copy",
        also=r"发送成功",
        about=r"e-?mail|smtp|sms|notification|message\b|webhook|邮件|短信|验证码|通知|推送",
    ),
    _Topic(
        done="预订|预约|订好|改签|改期",
        verbs="booked|reserved|confirmed|scheduled|rescheduled",
        things="bookings?|reservations?|appointments?|flights?|rooms?|tables?|tickets?|visits?",
        also=r"(?:预订|预约|改签)(?:已经?)?成功",
        about=r"book(?:ing|ed)?\b|reserv|appointment|schedul|预订|预约|订位|改签",
    ),
    _Topic(
        done="登记|上报|反馈|转交|转接|转给|创建工单|建单",
        verbs="escalated|forwarded|created|opened|raised|filed|submitted|logged",
        things="tickets?|cases?|requests?|complaints?|issues?|reports?",
        also=r"工单已经?(?:创建|提交)",
        about=r"ticket|escalat|case creat|complaint|工单|投诉|转接|上报",
    ),
)
_SAID = tuple(re.compile(topic.said()) for topic in _TOPICS)
_ABOUT = tuple(re.compile(topic.about) for topic in _TOPICS)
ANYTHING = (1 << len(_TOPICS)) - 1
"""The topics of a log entry that names none."""
_CUES = (
    r"已|将|会|成功|预计|保证|马上|立即|立刻|稍后"
    r"|\bi\b|\bwe\b|been|success|refund|will|through|you'll"
)
MAYBE = f"(?i){_CUES}"
"""What every text with a promise matches (for RE2): a look that costs little."""
_MAYBE = re.compile(_CUES)


class Promise(NamedTuple):
    """`quote`: the sentence that makes it; `topics`: a bit for each topic it is about."""

    quote: str
    topics: int


def promise_in(text: str) -> Promise | None:
    """The first promise that an assistant makes in `text`, a conversation as rendered, and the
    topics of all."""
    first: str | None = None
    topics = 0
    for sentence in _said_by_others(text):
        words = sentence.lower()
        if not _MAYBE.search(words):
            continue
        about = sum(1 << bit for bit, said in enumerate(_SAID) if said.search(words))
        if about and not _UNSAID.search(words):
            topics |= about
            first = first or sentence[:_LONGEST].strip()
    return Promise(first, topics) if first else None


def topics_of(text: str) -> int:
    """What an entry of an operation log is about, a bit for each topic; `ANYTHING` where it does
    not say."""
    words = text.lower()
    return sum(1 << bit for bit, about in enumerate(_ABOUT) if about.search(words)) or ANYTHING


def _said_by_others(text: str) -> Iterator[str]:
    """The sentences of the turns that are not the user's, without their speakers."""
    of_user = False
    for line in text.split("\n"):
        begin = 0
        if speaker := _SPEAKER.match(line.lower()):
            of_user, begin = speaker["user"] is not None, speaker.end()
        if of_user:
            continue
        for end in _ENDS.finditer(line, begin):
            yield line[begin : end.end()]
            begin = end.end()
