"""Whether the hub that libraries download weights from can be reached."""

import time

import httpx
from huggingface_hub import constants

from temi.backbones.hub import hub_address

_SECONDS = 3.0  # to get any response of the hub
_KEPT_SECONDS = 30.0
_known: tuple[float, bool] | None = None


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
