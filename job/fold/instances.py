"""Who, where and when: users, hosts, paths, requests and dates in an operation log.

Invariant: only what its own form or the fixed words around it show to be one instance of many is
set aside (`for user anna from`, `/home/anna/a.csv`, `Thu Jun 16`); names of services, classes,
packages, tables and end points are what a line is about, and stay.

Every pattern begins with a literal or a small set of characters or is tried only where a literal
is in the text, and every repetition is bounded, so that a hostile line costs linear time.
"""

from __future__ import annotations

import re

from job.fold.codes import METHOD, METHODS
from job.words import holds_any, listed

VARIES = "<*>"

_NAME = r"(?:<[a-z_*]{1,32}>|[A-Za-z0-9_](?:[A-Za-z0-9_.@\\$+-]{0,62}[A-Za-z0-9_$])?)"

_MONTHS = listed("Jan, Feb, Mar, Apr, May, Jun, Jul, Aug, Sep, Oct, Nov, Dec")
_DATE = re.compile(
    r"(?:(?<![A-Za-z])(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},?[ ]{1,2})?"
    r"(?:(?<![0-9A-Za-z])[0-9]{1,2}[ /-])?"
    r"(?<![0-9A-Za-z])(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
    r"(?:[ ]{1,2}[0-9]{1,2},?|[ /-][0-9]{4})(?![0-9A-Za-z])"
    r"(?:[ :][0-9]{1,2}(?::[0-9]{2}){1,2}(?:[.,][0-9]{1,9})?)?"
    r"(?:[ ](?:[A-Z]{3,4}|[+-][0-9]{4})(?=[ ][0-9]{4}))?(?:[ ][0-9]{4}(?![0-9]))?"
)

_SEGMENT = r"(?:[A-Za-z0-9_.$%@#~+-]|[^\x00-\x7f]{1,60}(?=[A-Za-z0-9_-]{0,60}[./]))"
_PATH = re.compile(
    rf"(?<![A-Za-z0-9_.$}}\])>*/\\-])/{_SEGMENT}{{1,255}}(?:/{_SEGMENT}{{0,255}}){{0,60}}"
    r"(?::(?=[/0-9])[A-Za-z0-9_./:+-]{1,400})?(?<=[A-Za-z0-9_/$~#+%-])"
)
_ROOT = re.compile(
    r"/(?:home|root|var|usr|etc|tmp|opt|mnt|dev|proc|sys|boot|s?bin|lib(?:32|64)?|srv|scratch|gpfs"
    r"|lustre|nfs|Users|System|Library|Applications|Volumes|private|sdcard)[0-9]{0,3}(?:/|\Z)"
)
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,5}(?::[0-9:+-]{1,40})?\Z")
_FILE_LIKE = re.compile(r"/(?:[A-Za-z]|_[a-z]\w{0,40}|[A-Za-z]*[0-9][^/]{0,255})(?=/|\Z)")
_END_POINT = re.compile(
    rf"(?:{METHOD}|endpoint|route|request|requested|ur[il]|path|接口|请求)[\"'）)]?\s?[:=：]?\s?"
    r"[\"']?\Z",
    re.IGNORECASE,
)
_OF_AN_API = re.compile(r"/(?:api|apis|rest|rpc|graphql|v[0-9]{1,2})(?=/|\Z)")
_WINDOWS_PATH = re.compile(
    r"(?:(?<![A-Za-z0-9])[A-Za-z]:\\|(?<![A-Za-z0-9\\])\\\\?(?=[A-Za-z0-9.?-]{1,64}\\))"
    r"(?:[^\s\\\"'<>|,;()\[\]]{0,255}(?:[ ](?:Files|and|Settings|Data)(?:[ ]\(x[0-9]{2}\))?"
    r"(?:[ ]Settings)?(?=\\))?\\){0,60}[^\s\\\"'<>|,;:()\[\]]{0,255}(?<![.])"
)
_URL = re.compile(
    r"(?P<scheme>[a-z](?<![A-Za-z0-9].)[a-z0-9+]{1,11})://(?P<host>[^\s/\"'<>?#,;()\[\]]{0,255}"
    r"(?:<[a-z_*]{1,32}>)?(?::[0-9]{1,5})?)(?P<path>/[^\s?#\"'<>,;()\[\]]{0,2000})?"
    r"(?P<query>[?#][^\s\"'<>()\[\]]{0,4000})?"
)
_STORES = frozenset(
    listed("file, hdfs, s3, s3a, s3n, gs, oss, cos, abfs, wasb, nfs, ftp, sftp, smb")
)
"""Schemes behind which a file is named, and not an end point."""

_GOOD_REQUEST = re.compile(
    rf"({METHOD} )[^\s\"]{{1,4000}}(?=(?: HTTP/[0-9.]{{1,4}})?\"?"
    r",? (?:(?:status|code|statusCode|status_code)[:=] ?)?[123][0-9]{2}(?![0-9.]))"
)
_REQUEST_QUERY = re.compile(rf"({METHOD} [^\s?#\"]{{1,2000}})[?#][^\s\"]{{0,4000}}")
_CLIENT = re.compile(
    rf"\A(?:<ip>|[A-Za-z0-9_-]{{1,63}}(?:\.[A-Za-z0-9_-]{{1,63}}){{1,8}})(?:, ?<ip>){{0,8}}"
    rf" (?:\S{{1,80}} \S{{1,80}} )?(?=\"{METHOD} )"
)
_AGENT = re.compile(r"(\" [1-5][0-9]{2} (?:[0-9]{1,12}|-))(?: \"[^\"]{0,4000}\"){1,3}")

_ORDINARY = frozenset(
    listed(
        "a, an, the, and, or, not, no, none, null, nil, is, was, are, were, be, been, has, had",
        "have, does, did, do, can, cannot, could, may, must, will, should, would, already, never",
        "still, with, without, to, from, in, on, at, by, of, for, via, as, who, that, this, it",
        "its, when, after, before, during, into, unknown, invalid, missing, locked, expired",
        "disabled, enabled, deleted, created, denied, failed, failure, success, unauthorized",
        "authenticated, defined, specified, provided, supplied, required, found, exists",
        "available, unavailable, inactive, active, authentication, authorization, session",
        "sessions, input, request, requests, data, profile, settings, info, information, account",
        "accounts, login, logout, logins, id, ids, name, names, agent, agents, process",
        "processes, space, mode, message, messages, action, actions, event, events, lookup",
        "service, services, store, database, table, permission, permissions, quota, limit",
        "limits, group, groups, role, roles, level, code, error, errors, query, queries, search",
        "list, details, detail, context, token, tokens, registration, signup, signin, creation",
        "deletion, update, updates, import, export, sync, cache, feedback, interface, experience",
        "activity, key, keys, type, types, count, counts, preferences, password, passwords",
        "credentials, file, files, record, records, api, app, web, server, client, connection",
        "connections, up, down, restarted, reboot, started, stopped, ready, unreachable",
        "rejected, removed, added, terminated, state, status, port, took, errno, exit, signal",
        "reason, result, rc, exception, http",
    )
)
"""Words that may follow `user` or `host` and are no name of one."""

_ENDINGS = ("ed", "ing", "tion", "ment", "ance", "ence", "able", "start", "startup", "shutdown")

_PERSON = r"(?:user(?:name)?|role|account|principal)"
_MACHINE = r"(?:host(?:name)?|node|server|machine|slave|worker|datanode|instance|broker|peer)"
_KEYED = re.compile(
    r"((?<![A-Za-z0-9])(?:user|username|uname|usr|login|logname|ruser|rhost|account|owner|host"
    r"|hostname|node|nodename|pod|container|machine|tty|raddr|laddr|referr?er|user-agent)"
    r"\"?(?:=|:\s?|：\s?))"
    rf"(?:([\"'“])[^\"'”\n]{{1,400}}[\"'”]|((?>{_NAME}))(?!=))",
    re.IGNORECASE,
)
_CALLED = re.compile(
    rf"((?<![A-Za-z0-9])(?:(?:for|by|as|of|from|to|with|target|(?:in|il)valid|illegal|unknown"
    rf"|authenticating|on|at) ){{1,2}}(?:{_PERSON}|{_MACHINE}) )"
    rf"(?:([\"'])[^\"'\n]{{1,200}}[\"']|({_NAME}))",
    re.IGNORECASE,
)
_CALLED_FIRST = re.compile(
    rf"((?<![A-Za-z0-9.])(?:{_PERSON}|host) )(?:([\"'])[^\"'\n]{{1,200}}[\"']|({_NAME})"
    r"(?=[.,;:)\]]?(?:\s(?:from|by|on|at|via|with|in|logged|login|failed|authenticated|connected"
    r"|disconnected|has|is|was|does|could|cannot|not|[^\x00-\x7f])|\s?\Z)))",
    re.IGNORECASE,
)
_SIGNED_IN = re.compile(
    r"((?:password|publickey|keyboard-interactive(?:/pam)?|none|hostbased|gssapi-with-mic"
    r"|authentication|failures|attempts exceeded|session (?:opened|closed)) for (?:invalid user )?)"
    rf"()({_NAME})(?= from |[ ]?[\[(]| on |\Z)"
)
_CHINESE = re.compile(
    r"((?:用户名?|账号|账户|帐号|操作员|管理员|客户|会员|主机名?|服务器|节点|机器|实例)\s?[:：=]?\s?)"
    r"(?:([\[【（(“\"'「])[^\]】）)”\"'」\n]{1,60}[\]】）)”\"'」]"
    rf"|((?>{_NAME}))(?<=[a-z0-9>])(?=\s?(?:[^\x00-\x7f]|[,;:.)\]]|\Z)))"
)
_CHINESE_WORDS = listed(
    "用户, 账, 帐号, 操作员, 管理员, 客户, 会员, 主机, 服务器, 节点, 机器, 实例"
)
_KEYS = listed(
    "user, uname, usr, login, logname, host, account, owner, node, pod, container, machine, tty",
    "addr, referer, referrer",
)
_CALLS = listed(
    "user , username , role , account , principal , host , hostname , node , server , machine ",
    "slave , worker , datanode , instance , broker , peer ",
)
_CRON = re.compile(r"\A\([\w.-]{1,63}\) (?=CMD|RELOAD|BEGIN|END|LIST|REPLACE)")
_SUDO = re.compile(r"\A\s?[\w.-]{1,63} : (?=TTY=)")

_DOTTED = r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}(?:\.[A-Za-z0-9][A-Za-z0-9_-]{0,62}){1,10}\.?"
_NAMED_ADDRESS = re.compile(r"<ip>(?:\.[A-Za-z0-9][A-Za-z0-9-]{0,62}){2,8}(?![A-Za-z0-9.])")
"""The name of a machine that begins with its address: `203.0.113.9.dsl.example.net`."""
_IPV4 = re.compile(r"(?<![0-9.A-Za-z_-])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9A-Za-z_]|\.[0-9])")
_ANY_ADDRESS = re.compile(r"(?<= )::[0-9]?(?=[ \]:]|\Z)")
_HOST_SLASH = re.compile(r"(?<![\w/.:>-])(?:[A-Za-z0-9][\w.-]{0,62})?/(?=<ip>(?![\w/.-]))")
_HOST_BESIDE = re.compile(
    rf"(?<![\w.:/@-]){_DOTTED}(?=\s?[\[(]<ip>)|(?<=<ip> \(){_DOTTED}(?=\))"
    rf"|(?<=<ip> maps to ){_DOTTED}"
)
_HOST_PORT = re.compile(rf"(\A|proxy |through ){_DOTTED}:[0-9]{{1,5}}(?= )")


def without_instances(text: str, lower: str) -> str:
    """`text` with `<*>` for users, hosts, paths and dates. `lower` is `text` in lower case; the
    aliases of addresses in it are `<ip>`."""
    if "." in text or "::" in text:
        text = _without_addresses(text)
    if "/" in text or "\\" in text:
        text = _without_places(text)
    if holds_any(lower, _KEYS):
        text = _KEYED.sub(_set_aside, text)
    if holds_any(lower, _CALLS):
        text = _CALLED_FIRST.sub(_set_aside, _CALLED.sub(_set_aside, text))
    if " for " in text:
        text = _SIGNED_IN.sub(_set_aside, text)
    if not text.isascii() and holds_any(text, _CHINESE_WORDS):
        text = _CHINESE.sub(_set_aside, text)
    if text[:1] == "(":
        text = _CRON.sub("(<*>) ", text)
    elif "TTY=" in text:
        text = _SUDO.sub("<*> : ", text)
    if holds_any(text, _MONTHS):
        text = _DATE.sub(VARIES, text)
    return text


def _set_aside(match: re.Match[str]) -> str:
    """The words that name an instance, and `<*>` for it."""
    name = match[3]
    if name is not None and name.isalpha():
        ordinary = name.lower() in _ORDINARY or name.endswith(_ENDINGS)
        if ordinary or name.isupper():
            return match[0]
    return match[1] + VARIES


def _without_addresses(text: str) -> str:
    if text.count(".") >= 3:
        text = _IPV4.sub("<ip>", text)
    if " ::" in text:
        text = _ANY_ADDRESS.sub("<ip>", text)
    if "<ip>" in text:
        if "<ip>." in text:
            text = _NAMED_ADDRESS.sub("<ip>", text)
        if "/<ip>" in text:
            text = _HOST_SLASH.sub("", text)
        if holds_any(text, ("[<ip>", "(<ip>", "<ip> (", "<ip> maps")):
            text = _HOST_BESIDE.sub(VARIES, text)
    if (port := _HOST_PORT.match(text)) is not None:
        text = VARIES + text[port.end() :]
    if holds_any(text, ("proxy ", "through ")):
        text = _HOST_PORT.sub(r"\1" + VARIES, text)
    return text


def _without_places(text: str) -> str:
    if holds_any(text, METHODS):
        text = _AGENT.sub(r"\1", _CLIENT.sub(VARIES + " ", text))
        text = _REQUEST_QUERY.sub(r"\1", _GOOD_REQUEST.sub(r"\1" + VARIES, text))
    if "://" in text:
        text = _URL.sub(_url, text)
    if "/" in text:
        text = _PATH.sub(_path, text)
    if "\\" in text:
        text = _WINDOWS_PATH.sub(VARIES, text)
    return text


def _url(match: re.Match[str]) -> str:
    if match["scheme"] in _STORES:
        return f"{match['scheme']}://{VARIES}"
    return f"{match['scheme']}://{match['host']}{match['path'] or ''}"


def _path(match: re.Match[str]) -> str:
    """A file is set aside, an end point stays: `/home/anna/a.csv`, `/api/v1/orders`."""
    path = match[0]
    if _ROOT.match(path) or _EXTENSION.search(path):
        return VARIES
    depth = path.rstrip("/").count("/")
    if depth < 3 or _OF_AN_API.search(path):
        return path
    before = match.string[max(0, match.start() - 24) : match.start()]
    if (depth < 4 and not _FILE_LIKE.search(path)) or _END_POINT.search(before):
        return path
    return VARIES
