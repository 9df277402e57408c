"""Where libraries find weights that are not in the weights folder: a cache, and the hub."""

import time
from pathlib import Path

import httpx
from huggingface_hub import constants

_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth")
_SECONDS = 3.0  # to get any response of the hub
_KEPT_SECONDS = 30.0
_known: tuple[float, bool] | None = None


def cache_folder() -> Path:
    return Path(constants.HF_HUB_CACHE)


def hub_address() -> str:
    return str(constants.ENDPOINT)


def is_cached(repository: str) -> bool:
    """Whether the cache has weights of the repository."""
    folder = cache_folder() / f"models--{repository.replace('/', '--')}" / "snapshots"
    return any(path.suffix in _SUFFIXES for path in folder.glob("*/*"))


def is_reachable() -> bool:
    """Whether the hub gives any response; the answer is kept for half a minute."""
    global _known
    now = time.monotonic()
    if _known is None or now - _known[0] > _KEPT_SECONDS:
        _known = (now, _probe())
    return _known[1]


def _probe() -> bool:
    if constants.HF_HUB_OFFLINE:
        return False
    try:
        httpx.head(hub_address(), timeout=_SECONDS)
    except httpx.HTTPError:
        return False
    return True
