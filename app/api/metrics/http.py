"""Metrics of HTTP requests."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# From a prediction with a loaded model to an upload of gigabytes.
_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class HttpMetrics:
    """Labels are routes, not paths: clients must not be able to create time series."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "temi_http_requests",
            "Completed requests.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "temi_http_request_seconds",
            "Time until the end of the response.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._received = Counter(
            "temi_http_request_bytes",
            "Bytes of request bodies.",
            ["method", "route"],
            registry=registry,
        )
        self._sent = Counter(
            "temi_http_response_bytes",
            "Bytes of response bodies.",
            ["method", "route"],
            registry=registry,
        )
        self.in_flight = Gauge(
            "temi_http_requests_in_flight",
            "Requests in progress, event streams included.",
            registry=registry,
            multiprocess_mode="livesum",
        )

    def observe(
        self, method: str, route: str, status: int, seconds: float, received: int, sent: int
    ) -> None:
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(method, route).observe(seconds)
        self._received.labels(method, route).inc(received)
        self._sent.labels(method, route).inc(sent)
