"""A connection to PostgreSQL with a client-side timeout.

The server cancels its own long statements. A frozen server, or one behind a network that still
acknowledges packets, cancels nothing, and the client would wait forever.
"""

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg.waiting import Ready, Wait

Result = TypeVar("Result")
Query = Generator[Wait, Ready | int, Result]
"""psycopg's protocol: the generator yields what it waits for, and is sent what is ready, or 0 when
a polling interval has passed."""


class TimeoutConnection(psycopg.Connection[Any]):
    """Closes itself and raises OperationalError after this time without data from the server."""

    timeout_seconds = 60.0

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        return super().wait(self._with_timeout(gen), *args, **options)

    def _with_timeout(self, query: "Query[Result]") -> "Query[Result]":
        last_data = time.monotonic()
        try:
            waiting_for = next(query)
            while True:
                ready = yield waiting_for
                now = time.monotonic()
                if ready:
                    last_data = now
                elif now - last_data > self.timeout_seconds:
                    self._time_out(now - last_data)
                waiting_for = query.send(ready)
        except StopIteration as end:
            result: Result = end.value
            return result

    def _time_out(self, seconds: float) -> None:
        self.pgconn.finish()  # a late response must not be read by the next query
        raise psycopg.OperationalError(f"no response from the database for {seconds:.0f} s")


def connection_class(timeout_seconds: float) -> type[TimeoutConnection]:
    return type("TimeoutConnection", (TimeoutConnection,), {"timeout_seconds": timeout_seconds})
