"""What is said of GPUs, by a stand-in for NVIDIA's library that knows two and a part of one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from serve.metrics import families
from serve.models import gpu


class NVMLError(Exception):
    """See pynvml."""


class Library:
    """pynvml of a node with GPU 0, GPU-b and a part of the latter, which says nothing of its use,
    as is so of such parts."""

    NVMLError = NVMLError

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        """See pynvml."""
        return self._known(str(index), ("0",))

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        """See pynvml."""
        return self._known(uuid, ("GPU-b", "MIG-c"))

    def nvmlDeviceGetUtilizationRates(self, device: str) -> Any:
        """See pynvml."""
        if device == "MIG-c":
            raise NVMLError("Not Supported")
        return SimpleNamespace(gpu=50)

    def nvmlDeviceGetMemoryInfo(self, device: str) -> Any:
        """See pynvml."""
        return SimpleNamespace(used=1, total=2)

    def _known(self, name: str, names: tuple[str, ...]) -> str:
        if name not in names:
            raise NVMLError("Not Found")
        return name


def test_what_nobody_says_of_one_gpu_takes_no_number_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("serve.models.gpu._library", Library)
    given = [7, "MIG-c", "odd", 0, "GPU-b"]
    monkeypatch.setattr("serve.models.gpu.ray.get_gpu_ids", lambda: given)
    found = gpu.gpu_numbers("m")
    assert found[families.GPU_USE.name] == [(("m", "0"), [0.5]), (("m", "GPU-b"), [0.5])]
    assert [key[1:] for key, _ in found[families.GPU_MEMORY.name]] == [
        (name, kind) for name in ("MIG-c", "0", "GPU-b") for kind in ("used", "total")
    ]
