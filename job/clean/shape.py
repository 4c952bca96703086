"""What the fields of a JSON object, a CSV row or a logfmt line are, by their names.

Invariant: a field's part depends on its name alone, whatever its case and joints (`eventTime`,
`event_time`, `Event-Time`), and of two names for one part the one listed first wins, so that equal
records are understood equally wherever they stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from job.words import listed

_PARTS: dict[str, tuple[str, ...]] = {
    "time": listed(
        "timestamp, time, ts, datetime, eventtime, createdat, created, createtime, createdtime",
        "loggedat, logtime, asctime, occurredat, starttime, startedat, submittedat, submittime",
        "reviewtime, reviewdate, reviewedat, postedat, commenttime, updatedat, 时间, 时间戳",
        "创建时间, 发生时间, 评论时间, 评价时间, 提交时间, 反馈时间, 记录时间, 对话时间, 日志时间",
        "date, day, 日期, realtimetimestamp, timeunixnano",
    ),
    "level": listed(
        "level, severity, lvl, loglevel, levelname, severitytext, levelno, severitynumber",
        "priority, 级别, 日志级别, 等级, 严重程度, 严重级别",
    ),
    "rating": listed(
        "rating, star, stars, score, ratingvalue, overall, satisfaction, csat, nps, 评分, 星级",
        "打分, 分数, 满意度, 星",
    ),
    "user": listed(
        "user, userid, username, uid, customer, customerid, customername, memberid, member",
        "account, accountid, author, reviewer, reviewername, nickname, useridentity, 用户, 用户名",
        "用户id, 客户, 客户id, 会员, 昵称, 作者, 账号",
    ),
    "session": listed(
        "session, sessionid, chatid, conversationid, convoid, convid, dialogid, dialogueid, 会话",
        "会话id, 对话id, 会话编号",
    ),
    "service": listed(
        "service, servicename, svc, app, appname, application, applicationname, eventsource",
        "program, component, module, subsystem, container, containername, syslogidentifier",
        "服务, 服务名, 应用, 应用名, 系统, 模块",
    ),
    "host": listed(
        "host, hostname, server, servername, node, nodename, instance, instanceid, machine, pod",
        "podname, 主机, 主机名, 服务器, 节点, 机器",
    ),
    "turns": listed(
        "messages, turns, original, dialogue, dialog, conversation, conversations, chat, chats",
        "chathistory, chatlog, history, utterances, transcript, 对话, 对话内容, 消息列表",
        "聊天记录, 会话记录, 会话内容",
    ),
    "prompt": listed(
        "prompt, question, query, instruction, input, userinput, usermessage, human, 问题, 提问",
        "用户输入",
    ),
    "reply": listed(
        "response, answer, completion, output, reply, assistantresponse, botresponse, assistant",
        "bot, 回答, 答案, 回复, 机器人回复, 模型输出",
    ),
    "message": listed(
        "message, msg, log, text, content, body, event, description, detail, details, 消息, 日志",
        "日志内容, 内容, 描述, 信息, 详情",
    ),
    "feedback": listed(
        "review, reviewbody, reviewtext, reviewcontent, comment, commenttext, comments, feedback",
        "feedbacktext, opinion, content, text, body, message, description, 评价, 评价内容, 评论",
        "评论内容, 反馈, 反馈内容, 意见, 建议, 用户反馈, 内容",
    ),
    "title": listed("title, subject, headline, summary, 标题, 主题"),
}
_OPERATION_MARKS = frozenset(
    listed(
        "logger, loggername, eventname, errorcode, errormessage, eventtype, eventsource, traceid",
        "spanid, requestid, thread, threadname, pid, stack, stacktrace, exception, statuscode",
        "service, servicename, svc, host, hostname, component, msg, log, lvl, 服务, 服务名, 主机",
        "日志, 线程, 错误码, 模块",
    )
)
"""A record with one of these is of an operation, unless it has turns or a rating."""
_NOT_FEEDBACK = frozenset(listed("message, msg, log, event, description, detail, details"))
"""Names of a text that alone do not make a record feedback."""

_NAMES_OF_ONE = listed("username, name, id, userid, login, email, nickname, arn, principalid")
"""Where a user, a service or a host is an object: what names it."""

SAID = listed("content, text, message, value, utterance, body, msg, parts, 内容, 消息, 文本, 发言")
SPEAKER = listed(
    "role, from, speaker, sender, sendertype, author, participant, 角色, 发言人, 发送者, 说话人",
    "name",
)
SENT = listed("createdat, timestamp, time, ts, createtime, sentat, date, datetime, 时间, 发送时间")
"""Of a turn of a conversation: what was said, who spoke, when; best first."""

Path = tuple[str, ...]

_LONGEST_NAME = 100
_LONGEST_NAMES = 4000
"""Characters of a name, and of all names of a record, that are remembered: what is remembered
must not grow with what hostile records hold."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of a record by the part they can have, best first."""

    parts: Mapping[str, tuple[str, ...]]
    operation: bool
    feedback: bool
    """Whether a field is called as feedback is (`review`, `content`, 评价, ...)."""

    def of(self, part: str) -> tuple[str, ...]:
        """The fields that can be `part`."""
        return self.parts.get(part, ())


def plain(name: str) -> str:
    """A field's name without case and joints: `eventTime`, `event_time` -> `eventtime`; a very long
    one, which no part has, as it is."""
    return _plain(name) if len(name) <= _LONGEST_NAME else name


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def shape_of(names: Path) -> Shape:
    """The shape of a record whose fields have these names."""
    remembered = len("".join(names)) <= _LONGEST_NAMES
    return _shape_of(names) if remembered else _shape_of.__wrapped__(names)


@lru_cache(maxsize=1024)
def _shape_of(names: Path) -> Shape:
    by_plain: dict[str, str] = {}
    for name in names:
        by_plain.setdefault(plain(name), name)
    parts = {
        part: tuple(by_plain[known] for known in order if known in by_plain)
        for part, order in _PARTS.items()
    }
    called = {plain(name) for name in parts["feedback"]}
    return Shape(
        parts={part: found for part, found in parts.items() if found},
        operation=not _OPERATION_MARKS.isdisjoint(by_plain),
        feedback=bool(called - _NOT_FEEDBACK),
    )


def at_path(data: Mapping[str, Any], dotted: str) -> tuple[Path, Any] | None:
    """The value at `a.b.c`, and its path; a field whose own name has dots is found first."""
    if dotted in data:
        return (dotted,), data[dotted]
    value: Any = data
    path = tuple(dotted.split("."))
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return path, value


def named(data: Mapping[str, Any], shape: Shape, part: str) -> tuple[Path, str] | None:
    """The first field of `part` that holds a name or a number (or an object with one), as text."""
    for field in shape.of(part):
        value = data[field]
        if isinstance(value, Mapping):
            inner = {plain(str(key)): str(key) for key in value}
            for known in _NAMES_OF_ONE:
                if known in inner and (text := _as_name(value[inner[known]])):
                    return (field, inner[known]), text
        elif text := _as_name(value):
            return (field,), text
    return None


def _as_name(value: Any) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return str(value)
