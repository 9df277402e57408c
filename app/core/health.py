"""Is everything there that the service needs? Used by /readyz and by `temi doctor`."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import text

from app.core.migrations import is_current
from app.core.queue import check_broker
from app.core.runtime import Runtime
from temi.catalog import DEFAULT_BACKBONE, check_backbone


@dataclass(frozen=True)
class Finding:
    ok: bool
    detail: str | None = None


def check_health(runtime: Runtime) -> dict[str, Finding]:
    checks: dict[str, Callable[[Runtime], None]] = {
        "database": _check_database,
        "broker": lambda r: check_broker(r.celery),
        "storage": _check_storage,
        "weights": lambda r: check_backbone(DEFAULT_BACKBONE, r.settings.weights_dir),
    }
    return {name: _find(check, runtime) for name, check in checks.items()}


def _find(check: Callable[[Runtime], None], runtime: Runtime) -> Finding:
    try:
        check(runtime)
    except Exception as error:  # noqa: BLE001 - whatever is wrong is the finding
        return Finding(ok=False, detail=str(error).splitlines()[0][:300] or type(error).__name__)
    return Finding(ok=True)


def _check_database(runtime: Runtime) -> None:
    with runtime.db.read() as session:
        session.execute(text("SELECT 1"))
    if not is_current(runtime.db):
        raise RuntimeError("the tables are not current; run `temi db upgrade`")


def _check_storage(runtime: Runtime) -> None:
    runtime.storage.write("health/probe", b"ok")
    if runtime.storage.read("health/probe") != b"ok":
        raise RuntimeError("what was written cannot be read back")
