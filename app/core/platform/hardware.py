"""What /proc tells of this machine: importing torch would cost a process seconds and a GB."""

import os
import platform
from pathlib import Path

from app.core.platform.settings import Settings

_GPUS = Path("/proc/driver/nvidia/gpus")
_CPUS = Path("/proc/cpuinfo")


def computes_on_gpu(settings: Settings) -> bool:
    """Whether `TEMI_DEVICE` is a GPU of this machine."""
    if settings.device != "auto":
        return settings.device.startswith("cuda")
    return bool(visible_gpus())


def visible_gpus() -> list[str]:
    """Returns the names of the GPUs that CUDA may use."""
    return [] if os.environ.get("CUDA_VISIBLE_DEVICES") == "" else gpu_names()


def gpu_names() -> list[str]:
    try:
        described = [path.read_text() for path in sorted(_GPUS.glob("*/information"))]
    except OSError:
        return []
    return [name for text in described if (name := _field(text, "Model"))]


def cpu_name() -> str:
    try:
        name = _field(_CPUS.read_text(), "model name")
    except OSError:
        name = None
    return name or platform.processor() or platform.machine()


def cpu_flags() -> set[str]:
    """Returns the names of the CPU's instructions, or nothing if the kernel does not list them."""
    try:
        return set((_field(_CPUS.read_text(), "flags") or "").split())
    except OSError:
        return set()


def _field(text: str, name: str) -> str | None:
    """Returns the value of the first line `name: value`."""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None
