"""How busy the GPUs of this process are, by NVIDIA's own library where there is one.

Invariant: where there is no GPU, or nobody says how it is, there are no numbers and no error.
"""

from __future__ import annotations

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
        device = nvml.nvmlDeviceGetHandleByIndex(int(gpu))
        busy = nvml.nvmlDeviceGetUtilizationRates(device).gpu / PERCENT
        memory = nvml.nvmlDeviceGetMemoryInfo(device)
        found[families.GPU_USE.name].append(((model, gpu), [busy]))
        found[families.GPU_MEMORY.name] += [
            ((model, gpu, "used"), [float(memory.used)]),
            ((model, gpu, "total"), [float(memory.total)]),
        ]
    return found
