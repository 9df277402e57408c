"""In which numbers the large matrix products are done."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def matrix_dtype(precision: str, device: torch.device) -> torch.dtype:
    """``auto`` is bfloat16 where the hardware multiplies it faster than float32."""
    if precision == "auto":
        fast = _gpu_has_bfloat16() if device.type == "cuda" else _cpu_has_bfloat16()
        return torch.bfloat16 if fast else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]


@contextmanager
def products_in(dtype: torch.dtype, device: torch.device) -> Iterator[None]:
    """Matrix products in ``dtype``; weights, losses and the optimizer stay in float32."""
    # The cache keeps copies of weights, which an optimizer step would leave stale.
    with torch.autocast(
        device.type, dtype=dtype, enabled=dtype != torch.float32, cache_enabled=False
    ):
        yield


def _cpu_has_bfloat16() -> bool:
    """Without matrix or vector instructions for it, a CPU emulates bfloat16 a hundred times
    slower than float32."""
    return torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()


def _gpu_has_bfloat16() -> bool:
    return bool(torch.cuda.is_bf16_supported(including_emulation=False))
