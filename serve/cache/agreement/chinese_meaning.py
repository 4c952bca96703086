"""The meaning of a Chinese question: its form, with a few other words and turns made one.

Invariant: each rule rewrites a whole question of a fixed shape into another one that asks the same,
or a question word that means the same where it stands; nothing else is touched.
"""

from __future__ import annotations

import re

_WORDS = (
    (re.compile("(?<![因认成作以称视])为[何啥]"), "为什么"),
    (re.compile("(?<![任如为])何时"), "什么时候"),
    (re.compile("哪儿"), "哪里"),
    (re.compile("多长时间"), "多久"),
    (re.compile("(?:星期|礼拜)([一二三四五六日])"), r"周\1"),
    (re.compile("(?:星期|礼拜)天(?!气)"), "周日"),
)
"""Question words and days that mean the same; not where the first character ends another word."""
_DO = (
    "安装|卸载|设置|下载|上传|重置|注销|使用|修改|删除|取消|查询|打开|关闭|开启|更新|登录|注册|截屏"
    "|连接|计算|创建|做|画|煮|炒|洗|读取|导出|导入|备份|重命名|停止|启动|退出|退票|退款|退货"
    "|合并|压缩"
)
_HOW_FIRST = re.compile(f"(?:怎么|如何|怎样)(?={_DO}|在[A-Za-z])")
_HOW_TO = re.compile(f"(?:怎么|如何|怎样)(?={_DO})")
_NAME = "[A-Za-z][A-Za-z0-9 .+#-]{0,20}"
_IN_NAME = re.compile(f"怎么在({_NAME})([中里上])(?=..)")
"""How something is done in a program or a language, which has a Latin name. Without 在 the name may
be who does it: TikTok 怎么赚钱."""
_PERSONS = re.compile("[我你您他她它咱]")
_ABOUT_WORDS = re.compile("[字词读音]|拼音|意思|造句|翻译|英文|英语|中文|怎么说|怎么写")
"""Questions that may be about words, in which each is as it is written."""
_WONDERING = re.compile("不|没|这么|那么|就|很|好多|太")
"""What stands in a question that wonders why something is so: 怎么登录不上, 怎么启动这么慢."""
_STATED = ("了", "的", "啊", "吗", "呀", "呢")
"""What ends a question that asks why something is so, more than how it is done (怎么走了)."""
_NAMED = "[^我你您他她它这那?,。!、是不谁哪何怎吗的]{1,10}"
_ONE = "[^的和与是了谁,。、]{2,20}"
_TURNS = (
    (re.compile(f"({_NAME})是什么"), r"什么是\1"),
    (re.compile(r"(.{2,})有多([长高深宽重远])"), r"\1多\2"),
    (re.compile(r"从([^从到]+到[^从到]+)多远"), r"\1多远"),
    (re.compile(r"(.{2,})的价格是多少"), r"\1多少钱"),
    (re.compile(f"谁(发明|写|画|创立|发现|提出|设计)了({_ONE})"), r"\2是谁\1的"),
    (re.compile(f"({_NAMED})怎么([煮炖蒸腌])"), r"怎么\2\1"),
)
"""Whole questions, and how else they are asked."""
_SIDE = "[^和与的在从到跟比,、]{1,20}"
_DIFFERENCE = re.compile(f"({_SIDE})[和与]({_SIDE})(?:的区别是什么|有什么区别)")


def meaning(form: str, letter: str) -> str:
    """The characters of the meaning of a form. `letter`: what follows them to the letter."""
    said = form
    if _ABOUT_WORDS.search(said):
        return said
    for word, same in _WORDS:
        said = word.sub(same, said)
    if not said.endswith(_STATED) and not _WONDERING.search(said):
        said = _HOW_FIRST.sub("怎么", said, count=1) if _HOW_FIRST.match(said) else said
        said = said if _PERSONS.search(said) else _HOW_TO.sub("怎么", said)
        said = _IN_NAME.sub(r"在\1\2怎么", said, count=1) if _IN_NAME.match(said) else said
    if letter:
        return said
    for turn, same in _TURNS:
        if turn.fullmatch(said):
            said = turn.sub(same, said)
    sides = _DIFFERENCE.fullmatch(said)
    return "和".join(sorted(sides.groups())) + "有什么区别" if sides else said
