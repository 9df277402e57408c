"""Opaque ids that sort by creation time: `ds_01k3...`."""

import os
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u to misread
_TIME_BITS = 48
_RANDOM_BITS = 80
_lock = threading.Lock()
_last = 0


def new_id(prefix: str) -> str:
    """A new id, larger than all earlier ones of this process, even within a millisecond."""
    return new_ids(prefix, 1)[0]


def new_ids(prefix: str, count: int) -> list[str]:
    """Ids in ascending order, larger than all earlier ones of this process."""
    global _last
    with _lock:
        fresh = (time.time_ns() // 1_000_000 << _RANDOM_BITS) | int.from_bytes(os.urandom(10))
        first = max(fresh, _last + 1)
        _last = first + count - 1
    return [f"{prefix}_{_encode(number)}" for number in range(first, first + count)]


def created_at_of(some_id: str) -> float:
    """The creation time of an id, in seconds since 1970, to the millisecond."""
    number = 0
    for digit in some_id.rpartition("_")[2]:
        number = number << 5 | _ALPHABET.index(digit)
    return float(number >> _RANDOM_BITS) / 1000


def _encode(number: int) -> str:
    length = -(-(_TIME_BITS + _RANDOM_BITS) // 5)
    return "".join(_ALPHABET[number >> 5 * i & 31] for i in reversed(range(length)))
