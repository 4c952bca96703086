"""How busy the GPUs of this process are, by NVIDIA's own library where there is one.

Invariant: where there is no GPU, or nobody says how it is, there are no numbers and no error; a
number that is not to be had takes no other along.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import ray

from serve.metrics import families
from serve.metrics.numbers import Snapshot

PERCENT = 100


@cache
def _library() -> Any:
    """pynvml, at work; None where it, the driver or a GPU is missing."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # ImportError, or NVMLError of many kinds
        return None
    return pynvml


def gpu_numbers(model: str) -> Snapshot:
    """Use and memory of each GPU that Ray gave this process."""
    given = [str(each) for each in ray.get_gpu_ids()]
    nvml = _library() if given else None
    if nvml is None:
        return {}
    found: Snapshot = {families.GPU_USE.name: [], families.GPU_MEMORY.name: []}
    for gpu in given:
        with _unless_unknown(nvml):
            device = _device(nvml, gpu)
            with _unless_unknown(nvml):
                # Not of a part of a GPU (MIG).
                busy = nvml.nvmlDeviceGetUtilizationRates(device).gpu / PERCENT
                found[families.GPU_USE.name].append(((model, gpu), [busy]))
            memory = nvml.nvmlDeviceGetMemoryInfo(device)
            found[families.GPU_MEMORY.name] += [
                ((model, gpu, "used"), [float(memory.used)]),
                ((model, gpu, "total"), [float(memory.total)]),
            ]
    return found


def _device(nvml: Any, gpu: str) -> Any:
    """`gpu`: as in CUDA_VISIBLE_DEVICES, a number, or the name of a GPU or of a part of one."""
    if gpu.isdecimal():
        return nvml.nvmlDeviceGetHandleByIndex(int(gpu))
    return nvml.nvmlDeviceGetHandleByUUID(gpu)


@contextmanager
def _unless_unknown(nvml: Any) -> Iterator[None]:
    try:
        yield
    except nvml.NVMLError:
        return
