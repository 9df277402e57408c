"""A cache that is bounded by the bytes of its values."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


Value = TypeVar("Value", bound=Sized)


class ByteCache(Generic[Value]):
    """Drops the least recently used values. A value that does not fit is not kept."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def add(self, key: Hashable, value: Value) -> None:
        with self._lock:
            self._values[key] = value
            while sum(kept.nbytes for kept in self._values.values()) > self._max_bytes:
                self._values.popitem(last=False)
