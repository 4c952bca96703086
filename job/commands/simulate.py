"""`fupan simulate`: the simulated provider on this machine, from flags or a settings file.

Invariant: flags win over the file; every value is checked by `serve.simulated_settings`.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from pydantic import ValidationError

from job.config_file import validation_text
from job.errors import UsageError
from serve.simulated_settings import Settings


def simulate(
    port: Annotated[int, typer.Option(help="0 takes any free one.")] = 8009,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    settings: Annotated[
        Path | None,
        typer.Option(help="JSON file with any of the settings of docs/simulated.md."),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="JSON file: phrases of records and the answers to them.")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="Serve a model of this name.")] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[MODEL=]INPUT,CACHED,OUTPUT", help="Per million tokens; /stats has the bill."
        ),
    ] = None,
    rpm: Annotated[int | None, typer.Option(help="Requests a minute.")] = None,
    burst: Annotated[int | None, typer.Option(help="Requests at once. [default: rpm]")] = None,
    tpm: Annotated[int | None, typer.Option(help="Tokens a minute.")] = None,
    context: Annotated[int | None, typer.Option(help="Tokens a request may take.")] = None,
    time_scale: Annotated[
        float | None, typer.Option(help="Seconds of the provider in one of the clock.")
    ] = None,
    no_retry_after: Annotated[
        bool, typer.Option("--no-retry-after", help="Do not say when to come back after a 429.")
    ] = False,
    refuse: Annotated[
        list[str] | None,
        typer.Option(help="Refuse a feature: json_schema, json_object, max_tokens, ..."),
    ] = None,
    poison: Annotated[
        list[str] | None, typer.Option(help="Refuse every request that holds this phrase.")
    ] = None,
    outage: Annotated[
        list[str] | None,
        typer.Option(metavar="FROM-TO", help="Be down, in seconds from the first request."),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=SHARE", help="server_error, reset, hang, cut, missing, ..."),
    ] = None,
    fades_from: Annotated[
        int | None, typer.Option(help="Answer records from this place in a request on wrongly.")
    ] = None,
    fault_seed: Annotated[int | None, typer.Option(help="Decides which requests.")] = None,
    log: Annotated[Path | None, typer.Option(help="Write a line of JSON per request.")] = None,
) -> None:
    """Run a simulated provider, to try a run without a key.

    It has limits, latencies and faults of a real one. It answers from --truth; without one it finds
    every record normal.

    \b
        fupan simulate --rpm 60 &
        fupan run logs/ --base-url http://127.0.0.1:8009/v1 --model simulated --rpm 60

    What it has seen is at http://127.0.0.1:8009/stats.
    """
    from serve.simulated import serve_forever

    given: dict[str, Any] = {
        "rpm": rpm,
        "request_burst": burst,
        "tpm": tpm,
        "context": context,
        "time_scale": time_scale,
        "retry_after": False if no_retry_after else None,
        "unsupported": refuse,
        "poison": poison,
        "outages": [_window(text) for text in outage] if outage else None,
        "fault_shares": dict(_share(text) for text in fault) if fault else None,
        "fault_seed": fault_seed,
        "models": model,
        "prices": dict(_price(text, model) for text in price) if price else None,
        "fades_from": fades_from,
        "log": log,
        "truth": _json(truth) if truth else None,
    }
    values = _json(settings) if settings else {}
    values |= {name: value for name, value in given.items() if value is not None}
    try:
        made = Settings.model_validate(values)
    except ValidationError as error:
        raise UsageError(validation_text(error)) from error
    port = port or _free_port(host)

    def listening() -> None:
        print(f"simulated provider at http://{host}:{port}/v1", file=sys.stderr, flush=True)

    try:
        serve_forever(made, host, port, listening)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        value = orjson.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} holds no JSON object")
    return value


def _window(text: str) -> tuple[float, float]:
    start, _, end = text.partition("-")
    try:
        return float(start), float(end)
    except ValueError as error:
        raise UsageError(f"--outage {text!r}: use FROM-TO in seconds, such as 3-23") from error


def _share(text: str) -> tuple[str, float]:
    kind, _, share = text.partition("=")
    try:
        return kind, float(share)
    except ValueError as error:
        raise UsageError(f"--fault {text!r}: use KIND=SHARE, such as reset=0.05") from error


def _price(text: str, models: list[str] | None) -> tuple[str, dict[str, str]]:
    name, _, amounts = text.rpartition("=")
    parts = amounts.split(",")
    if len(parts) != 3:
        raise UsageError(f"--price {text!r}: use [MODEL=]INPUT,CACHED,OUTPUT, such as 2,0.2,3")
    model = name or (models[0] if models else "simulated")
    return model, dict(zip(("input", "cached", "output"), parts, strict=True))


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
