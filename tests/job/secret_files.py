"""A folder of logs in every format with every seed in every place, and the hunt for them.

Each writer puts each seed where its format lets it stand: in a message, a field under its own
name, the name of a field, a nested object, JSON in a string, a turn, a file's name.
"""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from tests.job.secret_seeds import PEM_LINES, READABLE, SEEDS, Seed

_FIELDS = {
    "password": "Fi3ldPa55",
    "clientSecret": "three little words",
    "pin": "4916",
    "手机号": "62781934",
    "phone": "9776252661",
    "wechat": "mei_shop_77",
    "passport_no": "G55120987",
    "bankAccount": "3301040160009712",
    "verifyCode": "204817",
    "x-api-key": "k9f3m2q8z7",
    "Authorization": "Token 5f2d8c1b9a7e4036",
}
"""Fields whose name says that their value is private, whatever it looks like."""
FIELD_SECRETS = (*(value for name, value in _FIELDS.items() if name != "Authorization"),)
FIELD_SECRETS += ("5f2d8c1b9a7e4036",)

_FILE_NAMES = ("13655209981.log", "wu.gang@corpmail.example.com/app.log", "host-198.51.100.23.log")
NAME_SECRETS = ("13655209981", "wu.gang@corpmail", "198.51.100.23")
_NAMES = {
    "user": "he.lin@corpmail.example.com",
    "session": "eyJhbGciOiJIUzI1NiJ9.eyJzaWQiOiI5OTEyMyJ9.Zk8Qm3Lx9Vb2Nm7Rt4Yp",
    "service": "http://svc:N4mePa55@198.51.100.77/api",
    "host": "198.51.100.78",
}
FIELDS_OF_RECORDS = ("he.lin@corpmail", "eyJzaWQiOiI5OTEyMyJ9", "N4mePa55", "198.51.100.7")
_KEEPS = " ".join(READABLE)


def write_secret_day(folder: Path) -> None:
    """Write the folder: about a dozen files with all seeds in each."""
    folder.mkdir(parents=True)
    said = [seed.said for seed in SEEDS]
    _lines(
        folder / "plain.log", (f"{_time(n)} ERROR [w-{n}] {s} {_KEEPS}" for n, s in _timed(said))
    )
    flat = [s.replace("\n", " ") for s in said]
    _lines(folder / "untimed.log", [*flat, "trace follows:", *_key_lines()])
    _lines(folder / "logfmt.log", (_logfmt(n, s) for n, s in _timed(flat)))
    _lines(folder / "app.jsonl", (_json_line(n, seed) for n, seed in enumerate(SEEDS)))
    _lines(folder / "mixed.log", _mixed(flat))
    (folder / "array.json").write_text(
        json.dumps({"Records": [{"message": s, "level": "error"} for s in said]}), "utf-8"
    )
    _lines(folder / "chat.jsonl", (_chat(n, s) for n, s in _timed(said)))
    _lines(folder / "long.jsonl", [_long_chat(said)])
    with gzip.open(folder / "old.log.gz", "wt", encoding="utf-8") as old:
        old.writelines(f"{_time(n)} WARN {s}\n" for n, s in _timed(flat))
    with (folder / "feedback.csv").open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.writer(file)
        table.writerow(["time", "rating", "user", "content", *_FIELDS])
        table.writerows([_time(n), 1, flat[n], s, *_FIELDS.values()] for n, s in _timed(said))
    _lines(folder / "fields.jsonl", _named_fields())
    _lines(folder / "rejected.jsonl", _rejected())
    for name in _FILE_NAMES:
        (folder / name).parent.mkdir(exist_ok=True)
        _lines(folder / name, ["2026-03-14 10:00:00 ERROR disk is full on /var"])


def _timed(said: Iterable[str]) -> Iterator[tuple[int, str]]:
    return enumerate(said)


def _time(number: int) -> str:
    return f"2026-03-14 10:{number // 60:02}:{number % 60:02}"


def _lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _key_lines() -> list[str]:
    return ["-----BEGIN PRIVATE KEY-----", *PEM_LINES, "-----END PRIVATE KEY-----"]


def _logfmt(number: int, said: str) -> str:
    value = said.replace("\\", "\\\\").replace('"', '\\"')
    return f'time={_time(number).replace(" ", "T")}Z level=error svc=pay msg="{value}" n={number}'


def _json_line(number: int, seed: Seed) -> str:
    row = {
        "time": _time(number),
        "level": "error",
        "msg": seed.said,
        "request": {"headers": [{"name": "Note", "value": seed.said}], "body": seed.said},
        "inner": json.dumps({"said": seed.said, "deep": json.dumps({"said": seed.said})}),
        "quoted": json.dumps({"said": seed.said}, ensure_ascii=False),
        seed.said: number,
    }
    return json.dumps(row, ensure_ascii=bool(number % 2))


def _mixed(said: list[str]) -> Iterator[str]:
    for number, text in enumerate(said):
        if number % 3 == 0:
            yield json.dumps({"ts": _time(number), "severity": "error", "message": text})
        elif number % 3 == 1:
            yield f"{_time(number)} ERROR {text}"
            yield f"Traceback (most recent call last):\n  File 'x.py', line 3\n    call({text!r})"
            yield f"ValueError: {text}"
        else:
            yield _logfmt(number, text)


def _chat(number: int, said: str) -> str:
    turns = [
        {"role": "user", "content": f"Why does this fail? {said}"},
        {"role": "assistant", "content": [{"type": "text", "text": f"You said: {said}"}]},
        {
            "role": "assistant",
            "tool_calls": [{"function": {"name": "look", "arguments": json.dumps({"q": said})}}],
        },
        {"role": "user", "content": "It is broken and I cannot pay."},
    ]
    return json.dumps({"chat_id": f"c{number}", "messages": turns}, ensure_ascii=False)


def _long_chat(said: list[str]) -> str:
    filler = "the page loads for a while and then nothing happens at all "
    turns = [
        {"role": "user", "content": filler * (3 + n % 7) + text} for n, text in enumerate(said * 3)
    ]
    return json.dumps({"chat_id": "long", "messages": turns}, ensure_ascii=False)


def _named_fields() -> Iterator[str]:
    for name, value in _FIELDS.items():
        yield json.dumps({"level": "error", "msg": "save failed", "form": {name: value}})
        yield json.dumps({"level": "error", "msg": "save failed", name: value, "n": 1})
        pair = [{"name": name, "value": value}]
        if name in ("password", "x-api-key", "Authorization"):
            yield json.dumps({"level": "error", "msg": "call failed", "headers": pair})
    yield json.dumps({"level": "error", "msg": "login failed", **_NAMES})
    yield json.dumps({"level": "error", "msg": "number", "password": 73519264, "pin": 8841})


def _rejected() -> Iterator[str]:
    """Lines that are no JSON, each with a seed across the place where an excerpt ends."""
    for seed in SEEDS:
        said = seed.said.replace("\n", " ")
        place = said.find(seed.secret.split("\n")[0])
        for inside in (3, max(4, len(seed.secret) // 2)):
            yield from ['{"level": "info", "msg": "all is well"}'] * 3
            filler = "x " * max(0, (200 - place - inside - 8) // 2)
            yield '{"a": "' + filler + said.replace('"', '\\"') + '" oops'
    yield from ("null", "17", '"just a string with password=L0neStr1ng"')


LONE = ("L0neStr1ng", "73519264", "8841")


def hunted() -> dict[str, str]:
    """Every form in which a secret may have got out -> the secret's kind."""
    found: dict[str, str] = {}
    for seed in SEEDS:
        for secret in seed.hunted:
            _add_forms(found, secret, seed.kind)
    for secret in (*FIELD_SECRETS, *NAME_SECRETS, *FIELDS_OF_RECORDS, *LONE):
        _add_forms(found, secret, f"field {secret}")
    return found


def _add_forms(found: dict[str, str], secret: str, kind: str) -> None:
    forms = {secret, quote(secret, safe=""), json.dumps(secret)[1:-1]}
    forms.add(base64.b64encode(secret.encode()).decode().rstrip("="))
    if len(secret) >= 16:
        # Part of a secret is found as well: any stretch of twelve characters.
        forms |= {secret[at : at + 12] for at in range(0, len(secret) - 11, 6)}
    digits = re.sub(r"\D", "", secret)
    if len(digits) >= 9 and re.fullmatch(r"[\d +()·-]+", secret):
        forms.add(digits)
    for form in forms:
        found.setdefault(form, kind)


def leaks(text: str, wanted: dict[str, str]) -> dict[str, str]:
    """The kinds found in `text`, each with the surroundings of the first find."""
    shown: dict[str, str] = {}
    for form, kind in wanted.items():
        short = len(form) < 6 or (form.isdigit() and len(form) < 9)
        pattern = rf"(?<![0-9A-Za-z.]){re.escape(form)}(?![0-9A-Za-z.])" if short else None
        match = re.search(pattern, text) if pattern else None
        at = match.start() if match else (-1 if pattern else text.find(form))
        if at >= 0 and kind not in shown:
            shown[kind] = text[max(0, at - 60) : at + len(form) + 30]
    return shown
