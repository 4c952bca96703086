"""What is said of models that cannot be loaded: from their files, and from what libraries raise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from serve.models.load import LOADER
from serve.models.settings import BUNDLED, SMOLLM, EmbedderSettings, GeneratorSettings
from serve.models.weights import fault, said

HEAD = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
WEIGHTS = len(HEAD).to_bytes(8, "little") + HEAD + bytes(8)
ENDLESS = WEIGHTS.replace(b"[0, 8]", b"[0,{}]")
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"


def folder(where: Path, **files: bytes) -> str:
    """A model's folder with these files; `__` in a name stands for a dot."""
    for name, content in files.items():
        (where / name.replace("__", ".")).write_bytes(content)
    return str(where)


def test_an_adapter_has_no_fault_and_its_weights_are_looked_at(tmp_path: Path) -> None:
    where = folder(tmp_path, adapter_config__json=b"{}", adapter_model__safetensors=WEIGHTS)
    assert fault(where, modules=False) == ""
    folder(tmp_path, adapter_model__safetensors=WEIGHTS[:-1])
    assert "adapter_model.safetensors has" in fault(where, modules=False)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, "has no config.json, so it is no model's folder"),
        ({"small__gguf": b"GGUF"}, "name one of them, such as {0}/small.gguf"),
        ({"config__json": b"{"}, "{0}/config.json is no JSON"),
        ({"config__json": b"\xff"}, "{0}/config.json is no JSON"),
        ({"config__json": b"{}"}, "{0} has no weights"),
        (
            {"config__json": b"{}", "model__safetensors": WEIGHTS[:-1]},
            f"{{0}}/model.safetensors has {len(WEIGHTS) - 1} of {len(WEIGHTS)} bytes",
        ),
        ({"config__json": b"{}", "model__safetensors": b"x" * 99}, "ends before its weights begin"),
        ({"config__json": b"{}", "model__safetensors": b""}, "ends before its weights begin"),
        ({"config__json": b"{}", "model__safetensors": bytes(99)}, "no head that can be read"),
        ({"config__json": b"{}", "model__safetensors": ENDLESS}, "no head that can be read"),
        ({"config__json": b"[" * 99_999}, "{0}/config.json is no JSON"),
        ({"config__json": POINTER}, "{0}/config.json is only a pointer"),
        ({"config__json": b"{}", "model__safetensors": POINTER}, "run `git lfs pull`"),
        ({"config__json": b"{}", "pytorch_model__bin": POINTER}, "run `git lfs pull`"),
    ],
)
def test_a_folder_says_what_is_wrong_with_it(
    tmp_path: Path, files: dict[str, bytes], expected: str
) -> None:
    assert expected.format(tmp_path) in fault(folder(tmp_path, **files), modules=False)


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b"GGUF rest", ""), (b"", "is no GGUF file"), (POINTER, "git lfs pull"), (None, "no file")],
)
def test_a_gguf_file_says_what_is_wrong_with_it(
    tmp_path: Path, content: bytes | None, expected: str
) -> None:
    file = tmp_path / "m.gguf"
    if content is not None:
        file.write_bytes(content)
    found = fault(str(file), modules=False)
    assert expected in found if expected else found == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/no/such/folder", "there is no folder /no/such/folder: correct the path"),
        ("./models/mine", "there is no folder ./models/mine: correct the path"),
        ("my/own/model", "there is no folder my/own/model: correct the path"),
        ("two--dashes", "it is no name of a model"),
        ("nobody/nothing", "fetch it there once, by `hf download nobody/nothing`"),
        ("nothing-of-this-name", "HF_HUB_OFFLINE=1 keeps it from being fetched"),
    ],
)
def test_a_name_that_leads_nowhere_says_so_offline(
    monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert expected in fault(name, modules=True)


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "SENTENCE_TRANSFORMERS_HOME"])
def test_what_was_downloaded_is_found_wherever_that_is(tmp_path: Path, variable: str) -> None:
    kept = tmp_path / "models--some--model"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text("abc")
    (kept / "snapshots" / "abc").mkdir(parents=True)
    folder(kept / "snapshots" / "abc", config__json=b"{}", model__safetensors=WEIGHTS)
    environment = {variable: str(tmp_path), "HF_HUB_OFFLINE": "1"}
    assert elsewhere("some/model", environment) == ""
    (kept / "snapshots" / "abc" / "model.safetensors").unlink()
    assert "has no weights" in elsewhere("some/model", environment)


def test_a_name_that_nobody_has_heard_of_says_so_online(tmp_path: Path) -> None:
    with hub() as url:
        told = elsewhere("some/model", {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path)})
    assert f"{url} shows no model of that name: correct it" in told
    assert "HF_TOKEN" in told


def test_a_hub_that_does_not_answer_is_asked_once_and_said_to(tmp_path: Path) -> None:
    asked: list[str] = []

    class Away(_Unknown):
        def do_HEAD(self) -> None:
            asked.append(self.path)

    with hub(Away) as url:
        told = elsewhere("some/model", {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path)})
    assert f"{url} does not answer (" in told
    assert len(asked) == 1


def test_what_a_hub_says_that_is_busy_is_left_to_the_library(tmp_path: Path) -> None:
    with hub(_Busy) as url:
        assert elsewhere("some/model", {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path)}) == ""


def elsewhere(name: str, environment: dict[str, str]) -> str:
    """`fault` in a process with this environment: Hugging Face's library reads it once."""
    program = f"from serve.models.weights import fault; print(fault({name!r}, modules=True))"
    variables = {**os.environ, "HF_HUB_OFFLINE": "0", **environment}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()


class _Unknown(BaseHTTPRequestHandler):
    """Hugging Face, which knows no model."""

    status = 404

    def do_HEAD(self) -> None:
        self.send_response(self.status)
        if self.status == 404:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD

    def log_message(self, *_: object) -> None:
        pass


class _Busy(_Unknown):
    """The same, which answers nothing now."""

    status = 503


@contextmanager
def hub(answers: type[_Unknown] = _Unknown) -> Iterator[str]:
    """Its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), answers) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("name", "error", "expected"),
    [
        ("m", OSError("first,\n  then\tmore"), "first, then more"),
        ("m", KeyError(), "KeyError"),
        ("m", RuntimeError("CUDA out of memory. Tried"), "choose a smaller model or con"),
        ("m", RuntimeError("DefaultCPUAllocator: can't allocate memory"), "it does not fit into m"),
        ("m", MemoryError(), "it does not fit into memory (MemoryError)"),
        ("m.gguf", ValueError("cannot reshape"), "the file cannot be read (cannot reshape): it is"),
        ("m", ValueError("x" * 10_000), " ..."),
    ],
)
def test_what_a_library_raises_is_one_line_that_says_what_to_do(
    name: str, error: Exception, expected: str
) -> None:
    told = said(name, error)
    assert expected in told
    assert "\n" not in told
    assert len(told) < 1000


def test_what_comes_with_a_package_is_no_name_at_hugging_face() -> None:
    assert LOADER.fault(EmbedderSettings(embedder=BUNDLED)) == ""
    assert LOADER.fault(GeneratorSettings(generator=SMOLLM)) == ""
    assert "no folder" in LOADER.fault(GeneratorSettings(generator="./models/gone"))
