"""`fupan serve`: the models of fupan.yaml behind one port, until it is told to end.

Invariant: whatever makes no sense (no provider, no key, a port that is taken, a name that leads
nowhere) is told before anything is started.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from job.config_file import CONFIG_FILE, load_config, validation_text
from job.errors import UsageError
from job.named_cluster import ADDRESS, named_address
from serve.ask.errors import AskError
from serve.ask.settings import api_key
from serve.gateway.keys import KeyRing
from serve.gateway.names import AUTO as AUTO_MODEL
from serve.gateway.names import Names
from serve.gateway.paths import absolute
from serve.gateway.settings import GatewaySettings
from serve.gateway.terms import terms_of
from serve.search.settings import EVERYBODY, SearchSettings

if TYPE_CHECKING:
    from job.commands.serve_cluster import Where

AUTO = "auto"
FAST_PORTS = {
    "RAY_SERVE_HAPROXY_STATS_PORT": 8404,
    "RAY_SERVE_HAPROXY_METRICS_PORT": 9101,
}
"""On which HAProxy shows its statistics and metrics, on all interfaces: Ray's variables, and what
they are where nobody sets them."""
_SHOWN = 12
"""Names of models that are printed; all are at /v1/models."""
_LET_IN = "RAY_AUTH_MODE=token"
"""A cluster of our own lets in who can read ~/.ray/auth_token."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve_gateway(
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help=f"[default: {CONFIG_FILE} if there is one]")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")
    ] = None,
    port: Annotated[int | None, typer.Option(help="0 takes any free one. [default: 8000]")] = None,
    replicas: Annotated[
        str, typer.Option(metavar="N|auto", help="Processes; auto: 3 to 20, by the load.")
    ] = "1",
    fast: Annotated[
        bool,
        typer.Option("--fast", help="Behind HAProxy: several times the requests a second."),
    ] = False,
) -> None:
    """Serve the models of fupan.yaml by OpenAI's protocol.

    Applications change their base URL and nothing else. One list of names over all providers, one
    limiter, caches and limits for each API key: docs/gateway.md.

    \b
        fupan serve
        curl http://127.0.0.1:8000/v1/models

    Ctrl-C or SIGTERM ends it, after the requests in flight are answered. It runs in a Ray cluster
    of its own, or in the one that RAY_ADDRESS names.
    """
    settings = gateway_settings(config)
    count = _replicas(replicas)
    host = host or settings.serve.host
    settings = settings.model_copy(
        update={"serve": settings.serve.model_copy(update={"host": host})}
    )
    port = settings.serve.port if port is None else port
    keyless = settings.serve.keys is None and settings.serve.keys_env is None
    if named_address() is None:
        keyless = _check_own(settings).open
        port = _check_port(host, port)
        for variable, number in _fast_ports() if fast else ():
            _check_port("0.0.0.0", number, variable)  # noqa: S104  # where HAProxy listens
    elif fast:
        raise UsageError(
            f"--fast in the cluster of {ADDRESS}: the ingress is chosen by the environment of its "
            "nodes, see serve/production.yaml"
        )
    from job.commands.serve_cluster import in_flight, running

    with running(settings, host, port, count, fast) as where:
        for line in _lines(settings, where, keyless):
            print(line, flush=True)
        warnings = [
            *_warnings(where.host, where.port, keyless, fast),
            *search_warnings(settings.search, keyless),
        ]
        for warning in warnings:
            print(f"fupan: warning: {warning}", file=sys.stderr, flush=True)
        try:
            for line in where.models.loading():
                print(line, flush=True)
            threading.Event().wait()
        except KeyboardInterrupt:
            count = in_flight(where.url)
            print(f"ending: {_first(count)}", file=sys.stderr, flush=True)
    print("ended", file=sys.stderr, flush=True)


def gateway_settings(config: str | None) -> GatewaySettings:
    """The gateway's settings out of fupan.yaml. Raises UsageError."""
    file = load_config(config)
    if not file.providers and not file.models:
        raise UsageError(
            f"no provider to ask: write one in {config or CONFIG_FILE}, such as "
            "providers: {main: {base_url: https://HOST/v1, key_env: LLM_API_KEY, models: [NAME]}}, "
            "or a model that runs here, such as models: {e5: {embedder: bundled}}"
        )
    try:
        settings = GatewaySettings.model_validate(
            {
                "providers": file.providers,
                "models": file.models,
                "serve": file.serve,
                "search": file.search,
            }
        )
        Names(settings)
        return absolute(settings, Path(config or CONFIG_FILE).absolute().parent)
    except ValidationError as error:
        said = validation_text(error, GatewaySettings)
        raise UsageError(f"{config or CONFIG_FILE}: {said}") from error
    except AskError as error:
        raise UsageError(f"{config or CONFIG_FILE}: {error.message}") from error


def _check_own(settings: GatewaySettings) -> KeyRing:
    """The keys of clients. Raises UsageError for a key that this environment lacks. In a cluster
    that is joined those of its nodes decide."""
    try:
        for provider in settings.providers.values():
            api_key(provider)
        return KeyRing.load(settings.serve)
    except AskError as error:
        raise UsageError(error.message) from error


def _fast_ports() -> list[tuple[str, int]]:
    return [(name, int(os.environ.get(name, port))) for name, port in FAST_PORTS.items()]


def _check_port(host: str, port: int, setting: str = "--port") -> int:
    """The port; a free one for 0. Raises UsageError where it is taken, or not ours to take."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            return int(probe.getsockname()[1])
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or error
        raise UsageError(
            f"cannot listen on {host}:{port}: {said}. {setting} chooses another"
        ) from error


def _replicas(text: str) -> int | None:
    if text == AUTO:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--replicas {text!r}: a number of processes, or {AUTO}")
    return int(text)


def _warnings(host: str, port: int, keyless: bool, fast: bool) -> list[str]:
    found = []
    if keyless and host not in _LOOPBACK:
        found.append(
            f"no API keys are set up: whoever reaches {host}:{port} may ask, at your cost. See "
            "docs/keys.md"
        )
    if fast:
        ports = [str(port) for _, port in _fast_ports()]
        found.append(
            f"HAProxy shows statistics and metrics at ports {' and '.join(ports)} of every "
            "interface: close both in a firewall. See docs/gateway.md"
        )
    return found


def search_warnings(search: SearchSettings | None, keyless: bool) -> list[str]:
    """Why somebody may look for runs in vain."""
    found = []
    for entry in search.runs if search else ():
        if not Path(entry.path).is_dir():
            found.append(
                f"search.runs: there is no folder {entry.path} on this machine; what runs leave "
                "there is found as soon as there is one"
            )
        if keyless and entry.owner != EVERYBODY:
            found.append(
                f"search.runs: {entry.path} is of tenant {entry.owner}, and no API keys are set "
                "up, so nobody sees its runs. Leave the tenant out, or see docs/keys.md"
            )
    return found


def _first(count: int | None) -> str:
    """What is done before the end, where `count` requests are in flight; None: nobody knows."""
    if count is None:
        return "requests in flight are answered first"
    if count == 0:
        return "no request is in flight"
    one = count == 1
    number = "1 request that is" if one else f"{count:,} requests that are"
    gets = "gets its answer" if one else "get their answers"
    return f"the {number} in flight {gets} first; Ctrl-C again ends at once"


def _lines(settings: GatewaySettings, where: Where, keyless: bool) -> list[str]:
    """What is printed once it answers."""
    url = where.url
    listed = Names(settings)
    names = [entry.id for entry in listed.entries()]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    key = "" if keyless else ' -H "authorization: Bearer $KEY"'
    endpoint, body = _example(settings, listed)
    return [
        f"gateway at {url}",
        f"models: {', '.join(names[:_SHOWN])}{more}",
        *(f"{name}: {said}" for name, said in where.models.said.items()),
        f"try it: curl {url}/{endpoint}{key} -d '{body}'",
        f"share its limits: {_LET_IN} {ADDRESS}={where.cluster} fupan run ...",
        f"its processes' logs: {where.logs}",
    ]


def _example(settings: GatewaySettings, names: Names) -> tuple[str, str]:
    """An endpoint and a body that are answered: a chat where there is a model that writes."""
    terms = terms_of(settings)
    for entry in names.entries():
        if entry.id != AUTO_MODEL and terms[names.resolve(entry.id, {})[0]].writes:
            message = '[{"role": "user", "content": "Hello"}]'
            return "chat/completions", f'{{"model": "{entry.id}", "messages": {message}}}'
    first = names.entries()[0].id
    return "embeddings", f'{{"model": "{first}", "input": "Hello"}}'
