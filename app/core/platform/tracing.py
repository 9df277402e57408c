"""OpenTelemetry spans, from a request to the stages of its job; imported only if tracing is on."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from os import environ
from typing import TYPE_CHECKING, Any

from app.core.platform.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, SpanKind, Tracer

MISSING = (
    "TEMI_TRACING is on, but the OpenTelemetry packages are not installed: "
    "run `pip install temi-service[tracing]`, or set TEMI_TRACING=off"
)


@dataclass(frozen=True)
class _Running:
    provider: "TracerProvider"
    tracer: "Tracer"


_running: _Running | None = None


def can_trace(settings: Settings) -> bool:
    """Whether the packages that the settings need are installed."""
    if settings.tracing == "off":
        return True
    try:
        return find_spec("opentelemetry.sdk") is not None
    except ModuleNotFoundError:
        return False


def start_tracing(settings: Settings, process: str) -> None:
    """Call it once in a process; `process` is part of the service name of its spans, unless
    OTEL_SERVICE_NAME is set."""
    global _running
    if settings.tracing == "off" or _running is not None:
        return
    if not can_trace(settings):
        raise RuntimeError(MISSING)
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = {} if "OTEL_SERVICE_NAME" in environ else {"service.name": f"temi-{process}"}
    resource = Resource.create({**named, "service.version": version("temi-service")})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(_exporter(settings)))
    _running = _Running(provider, provider.get_tracer("temi"))


def stop_tracing() -> None:
    """Exports the remaining spans."""
    global _running
    running, _running = _running, None
    if running is not None:
        running.provider.shutdown()


def _exporter(settings: Settings) -> "SpanExporter":
    if settings.tracing == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def span(name: str, **attributes: Any) -> AbstractContextManager["Span | None"]:
    """A child span of the current one."""
    if _running is None:
        return nullcontext()
    return _running.tracer.start_as_current_span(name, attributes=_known(attributes))


def request_span(headers: Mapping[str, str]) -> AbstractContextManager["Span | None"]:
    """The span of a request, in the caller's trace if the headers name one."""
    if _running is None:
        return nullcontext()
    from opentelemetry.trace import SpanKind

    carrier = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
    return _continued("request", carrier, SpanKind.SERVER, {})


def describe_response(
    current: "Span", method: str, route: str, status: int, request_id: str
) -> None:
    """Sets the attributes that are known only after the response."""
    current.update_name(f"{method} {route}")
    attributes = {
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": status,
        "temi.request_id": request_id,
    }
    describe(current, failed=status >= 500, **attributes)


def attempt_span(
    name: str, traceparent: str | None, **attributes: Any
) -> AbstractContextManager["Span | None"]:
    """The span of one attempt at a job, in the trace of the request that created the job."""
    if _running is None:
        return nullcontext()
    from opentelemetry.trace import SpanKind

    carrier = {} if traceparent is None else {"traceparent": traceparent}
    return _continued(name, carrier, SpanKind.CONSUMER, _known(attributes))


def record_span(name: str, start_ns: int, end_ns: int, *, failed: bool, **attributes: Any) -> None:
    """Records a span that has ended in another process; times are nanoseconds since 1970."""
    if _running is None:
        return
    from opentelemetry.trace import StatusCode

    step = _running.tracer.start_span(name, start_time=start_ns, attributes=_known(attributes))
    if failed:
        step.set_status(StatusCode.ERROR)
    step.end(end_time=end_ns)


def describe(current: "Span | None", *, failed: bool = False, **attributes: Any) -> None:
    """Sets attributes that are known only at the end of a span."""
    if current is None:
        return
    from opentelemetry.trace import StatusCode

    current.set_attributes(_known(attributes))
    if failed:
        current.set_status(StatusCode.ERROR)


def traceparent() -> str | None:
    """The W3C traceparent of the current span, to continue the trace in another process."""
    if _running is None:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent")


def trace_id_of(traceparent: str | None) -> str | None:
    """The trace id, which all spans and log lines of a trace share."""
    return None if traceparent is None else traceparent.split("-")[1]


@contextmanager
def _continued(
    name: str, carrier: dict[str, str], kind: "SpanKind", attributes: dict[str, Any]
) -> Iterator["Span"]:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    assert _running is not None
    # From an empty context: earlier spans of this task are not its parents.
    parent: Context = TraceContextTextMapPropagator().extract(carrier, context=_empty_context())
    with _running.tracer.start_as_current_span(
        name, context=parent, kind=kind, attributes=attributes
    ) as current:
        yield current


def _empty_context() -> "Context":
    from opentelemetry.context import Context

    return Context()


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}
