"""The precision of the large matrix products: an explicit setting, never chosen by measurement.

float32 gives the same features on every CPU and GPU to about 1e-5 of the largest one. bfloat16
is faster on hardware with instructions for it, but changes single features by percents, so it is
used only if a setting requests it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from temi.config import PRECISIONS, Precision
from temi.errors import InvalidConfig


def matrix_dtype(precision: str) -> torch.dtype:
    if precision not in PRECISIONS:
        raise InvalidConfig(
            "precision", f"must be one of {', '.join(PRECISIONS)}, not {precision!r}"
        )
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]


@contextmanager
def autocast_to(dtype: torch.dtype, device: torch.device) -> Iterator[None]:
    """Compute matrix products in ``dtype``; weights, losses and the optimizer stay in float32."""
    if device.type == "cuda":
        # TF32 has only ten bits of mantissa, so it is not float32.
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    # The cache keeps copies of weights, which are outdated after an optimizer step.
    with torch.autocast(
        device.type, dtype=dtype, enabled=dtype != torch.float32, cache_enabled=False
    ):
        yield


def fast_precisions(device: torch.device) -> tuple[Precision, ...]:
    """Return the precisions that this hardware has instructions for.

    Other CPUs emulate bfloat16, with the same rounding but a hundred times slower.
    """
    has_bfloat16 = _gpu_has_bfloat16() if device.type == "cuda" else _cpu_has_bfloat16()
    return PRECISIONS if has_bfloat16 else ("float32",)


def _cpu_has_bfloat16() -> bool:
    return torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()


def _gpu_has_bfloat16() -> bool:
    return bool(torch.cuda.is_bf16_supported(including_emulation=False))
