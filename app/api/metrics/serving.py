"""Metrics of predictions, batches and loaded models."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from app.core.serving.client import ServingObserver
from app.core.serving.messages import Outcome, Predicted

_SECONDS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
_NOVELTY = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class ServingMetrics(ServingObserver):
    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = _counter(registry, "predict_requests", "Requests by outcome.", "outcome")
        self._images = _counter(registry, "predict_images", "Images by outcome.", "outcome")
        self._seconds = _seconds(
            registry, "predict_seconds", "Duration of a request, waiting included."
        )
        self._batch_size = Histogram(
            "temi_predict_batch_size", "Images in a batch.", buckets=_SIZES, registry=registry
        )
        self._novelty = Histogram(
            "temi_predict_novelty",
            "Share of the training images that are less unusual.",
            buckets=_NOVELTY,
            registry=registry,
        )
        self._wait = _seconds(
            registry, "predict_wait_seconds", "Waiting time of a batch's first image."
        )
        self._compute = _seconds(registry, "predict_compute_seconds", "Compute time of a batch.")
        self._waiting = _gauge(registry, "predict_waiting", "Images that wait for a prediction.")
        self._cache = _counter(
            registry, "model_cache_requests", "Lookups of a loaded model: hit or miss.", "result"
        )
        self._models = _gauge(registry, "model_cache_models", "Loaded models.")
        self._bytes = _gauge(registry, "model_cache_bytes", "Memory of the loaded models.")
        self._unloads = _counter(registry, "model_cache_unloads", "Unloaded models.", "reason")
        self._load = _seconds(registry, "model_load_seconds", "Time to load a model.")

    def predicted(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Predicted) and outcome.novelty is not None:
                self._novelty.observe(outcome.novelty)

    def answered(self, outcome: str, images: int, seconds: float) -> None:
        self._requests.labels(outcome).inc()
        self._images.labels(outcome).inc(images)
        self._seconds.observe(seconds)

    def batch(self, size: int, wait_seconds: float, compute_seconds: float) -> None:
        self._batch_size.observe(size)
        self._wait.observe(wait_seconds)
        self._compute.observe(compute_seconds)

    def waiting(self, count: int) -> None:
        self._waiting.set(count)

    def cache(self, result: str) -> None:
        self._cache.labels(result).inc()

    def loaded(self, models: int, bytes_: int) -> None:
        self._models.set(models)
        self._bytes.set(bytes_)

    def unloaded(self, reason: str) -> None:
        self._unloads.labels(reason).inc()

    def load_seconds(self, seconds: float) -> None:
        self._load.observe(seconds)


def _counter(registry: CollectorRegistry, name: str, help_: str, label: str) -> Counter:
    return Counter(f"temi_{name}", help_, [label], registry=registry)


def _gauge(registry: CollectorRegistry, name: str, help_: str) -> Gauge:
    return Gauge(f"temi_{name}", help_, registry=registry, multiprocess_mode="livesum")


def _seconds(registry: CollectorRegistry, name: str, help_: str) -> Histogram:
    return Histogram(f"temi_{name}", help_, buckets=_SECONDS, registry=registry)
