"""The command `fupan keys`: make an API key for the gateway, and list those of a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import typer
from pydantic import ValidationError

from job.errors import UsageError
from job.options import Json
from job.printable import printable
from serve.ask.errors import Misconfigured
from serve.gateway.keys import KeyRecord, digest_of, new_key, parse_keys

SHOWN_DIGITS = 8
"""Of a hash, enough to tell keys apart."""


def keys(
    action: Annotated[Literal["new", "list"], typer.Argument(help="new or list.")],
    name: Annotated[
        str, typer.Argument(help="new: the name of the key; list: the file.", metavar="NAME|FILE")
    ],
    tenant: Annotated[
        str | None,
        typer.Option(
            help="new: who shares cached answers with it. [default: NAME, nobody]", metavar="NAME"
        ),
    ] = None,
    rpm: Annotated[float | None, typer.Option(help="new: requests per minute.")] = None,
    tpm: Annotated[float | None, typer.Option(help="new: tokens per minute.")] = None,
    max_spend: Annotated[
        str | None,
        typer.Option(help="new: money per calendar month (UTC).", metavar="AMOUNT"),
    ] = None,
    currency: Annotated[
        str | None, typer.Option(help="new: of --max-spend, as in prices. [default: USD]")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="new: a model it may ask for; may be repeated. [default: all]"),
    ] = None,
    json: Json = False,
) -> None:
    """Make an API key for `fupan serve`, or list those of a file.

    new prints the line for the file of keys (serve.keys in fupan.yaml), which holds only the hash
    of the key, and on stderr the key itself, which is shown this once and kept nowhere. list shows
    the names and limits of a file.

    \b
        fupan keys new web --tenant shop --rpm 60 --max-spend 50 >> keys.yaml
        fupan keys list keys.yaml
    """
    if action == "list":
        _check_list(tenant, rpm, tpm, max_spend, currency, model)
        _list(Path(name), json)
        return
    if currency is not None and max_spend is None:
        raise UsageError("--currency is that of --max-spend, which is not given")
    key = new_key()
    wanted = {
        "name": name,
        "tenant": name if tenant is None else tenant,
        "sha256": digest_of(key),
        "rpm": rpm,
        "tpm": tpm,
        "max_spend": max_spend,
        "currency": currency,
        "models": model or None,
    }
    given = {field: value for field, value in wanted.items() if value is not None}
    record = _record(given)
    line = f"- {orjson.dumps(_shown(record)).decode()}"
    if json:
        print(orjson.dumps({"key": key, "line": line}).decode())
        return
    print(f"the key of {name}, which is not shown again:\n{key}", file=sys.stderr)
    print(line)


def _check_list(*new: object) -> None:
    if any(option is not None and option != [] for option in new):
        raise UsageError("fupan keys list takes a file only; limits belong to `fupan keys new`")


def _record(given: dict[str, Any]) -> KeyRecord:
    try:
        return KeyRecord.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = str(first["loc"][0]).replace("_", "-").replace("models", "model")
        where = "NAME" if option == "name" else f"--{option}"
        raise UsageError(f"{where} {first['input']!r}: {first['msg']}") from error


def _list(file: Path, json: bool) -> None:
    try:
        records = parse_keys(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8: save it as UTF-8") from error
    except Misconfigured as error:
        raise UsageError(error.message) from error
    for record in records:
        shown = _shown(record)
        if json:
            print(orjson.dumps(shown).decode())
        else:
            print(printable(_words(record)))


def _shown(record: KeyRecord) -> dict[str, Any]:
    """The record as it stands in a file; what it does not limit is left out."""
    shown = record.model_dump(mode="json", exclude_none=True)
    if record.max_spend is None:
        del shown["currency"]
    return shown


def _words(record: KeyRecord) -> str:
    limits = [
        f"{value:,g} {unit}"
        for value, unit in ((record.rpm, "requests/min"), (record.tpm, "tokens/min"))
        if value is not None
    ]
    if record.max_spend is not None:
        limits.append(f"{record.max_spend:f} {record.currency}/month")
    return (
        f"{record.name}: tenant {record.tenant}, {', '.join(limits) or 'no limits'}, "
        f"{', '.join(record.models or ()) or 'all models'}, "
        f"sha256 {record.sha256[:SHOWN_DIGITS]}…"
    )
