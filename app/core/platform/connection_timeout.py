"""A connection to PostgreSQL that does not wait for ever.

The server ends its own long statements. A server that is frozen, or out of reach behind a network
that still acknowledges, ends nothing, and whoever waits for its answer would wait with it.
"""

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg.waiting import Ready, Wait

Answer = TypeVar("Answer")
Asking = Generator[Wait, Ready | int, Answer]
"""How psycopg asks: it yields what it waits for, and is sent what has come; nothing, now and then.
"""


class TimeoutConnection(psycopg.Connection[Any]):
    """Gives up, and is closed, after `patience` seconds without any answer."""

    patience = 60.0

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        return super().wait(self._with_timeout(gen), *args, **options)

    def _with_timeout(self, asking: "Asking[Answer]") -> "Asking[Answer]":
        heard = time.monotonic()
        try:
            wanted = next(asking)
            while True:
                ready = yield wanted
                now = time.monotonic()
                if ready:
                    heard = now
                elif now - heard > self.patience:
                    self._give_up(now - heard)
                wanted = asking.send(ready)
        except StopIteration as end:
            answer: Answer = end.value
            return answer

    def _give_up(self, seconds: float) -> None:
        self.pgconn.finish()  # what it would still say belongs to nobody
        raise psycopg.OperationalError(f"the database has not answered for {seconds:.0f} s")


def connection_class(patience: float) -> type[TimeoutConnection]:
    return type("TimeoutConnection", (TimeoutConnection,), {"patience": patience})
