"""Opaque ids that sort by the time they were made: `ds_01k3...`."""

import os
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u to misread
_TIME_BITS = 48
_RANDOM_BITS = 80
_lock = threading.Lock()
_last = 0


def new_id(prefix: str) -> str:
    """Each id is larger than the one before it in this process, even within a millisecond."""
    global _last
    with _lock:
        fresh = (time.time_ns() // 1_000_000 << _RANDOM_BITS) | int.from_bytes(os.urandom(10))
        _last = fresh if fresh > _last else _last + 1
        return f"{prefix}_{_encode(_last)}"


def _encode(number: int) -> str:
    length = -(-(_TIME_BITS + _RANDOM_BITS) // 5)
    return "".join(_ALPHABET[number >> 5 * i & 31] for i in reversed(range(length)))
