"""`temi doctor`: what is installed, what is found, and what to do about what is not."""

import importlib.metadata
import json
import platform
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import typer
from rich.markup import escape
from rich.table import Table
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from app.cli.door import has_key
from app.cli.options import AsJson
from app.cli.output import results
from app.core.platform.settings import GiB, Settings, get_settings

_PACKAGES = {
    "torch": "torch",
    "timm": "timm",
    "open_clip_torch": "open_clip_torch",
    "faiss": "faiss-gpu",
    "celery": "celery",
    "fastapi": "fastapi",
    "sqlalchemy": "sqlalchemy",
}
_LOW_SPACE = 5 * GiB


@dataclass(frozen=True)
class Line:
    what: str
    ok: bool
    found: str
    hint: str = ""


def doctor(as_json: AsJson = False) -> None:
    """Check this installation; exits with 1 if something is wrong."""
    settings = get_settings()
    lines = [*_packages(), _device(settings), *_parts(settings), _space(settings), _door(settings)]
    if as_json:
        print(json.dumps([asdict(line) for line in lines], indent=2))
    else:
        _print(lines)
    if not all(line.ok for line in lines):
        raise typer.Exit(1)


def _packages() -> Iterator[Line]:
    yield Line("python", True, platform.python_version())
    for name, distribution in _PACKAGES.items():
        try:
            found = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            if name == "faiss":  # the build without CUDA, on machines that have no other
                found = importlib.metadata.version("faiss-cpu")
            else:
                yield Line(name, False, "missing", "run `make install`")
                continue
        yield Line(name, True, found)


def _device(settings: Settings) -> Line:
    import torch

    from temi.device import resolve_device

    try:
        device = resolve_device(settings.device)
    except Exception as error:  # noqa: BLE001 - whatever is wrong is the finding
        return Line("device", False, str(error), "set TEMI_DEVICE=auto, or check the GPU's driver")
    if device.type == "cuda":
        return Line("device", True, f"{device} ({torch.cuda.get_device_name(device)})")
    return Line("device", True, f"{device}, {settings.threads} threads")


def _parts(settings: Settings) -> Iterator[Line]:
    from app.core.health import Health
    from app.core.runtime import Runtime
    from temi.backbones.catalog import DEFAULT_BACKBONE

    places = {
        "database": make_url(settings.sqlalchemy_url).render_as_string(hide_password=True),
        "migrations": "tables",
        "broker": _without_password(settings),
        "storage": settings.storage_url or str(settings.blob_dir.absolute()),
        "weights": DEFAULT_BACKBONE,
        "workers": "queue",
    }
    for name, finding in Health(Runtime(settings)).check().items():
        found = places[name] if finding.detail is None else f"{places[name]}: {finding.detail}"
        yield Line(name, finding.ok, found, finding.hint or "")


def _without_password(settings: Settings) -> str:
    if settings.broker_url.startswith("filesystem:"):
        return f"filesystem, {settings.broker_dir.absolute()}"
    return make_url(settings.broker_url).render_as_string(hide_password=True)


def _space(settings: Settings) -> Line:
    free = shutil.disk_usage(settings.local_dir).free
    ok = free > _LOW_SPACE
    return Line("disk", ok, f"{free / GiB:.1f} GiB free", "" if ok else "free some space")


def _door(settings: Settings) -> Line:
    address = f"{settings.host}:{settings.port}"
    if _has_key(settings):
        return Line("access", True, f"{address}, with an API key")
    if settings.loopback_only:
        return Line("access", True, f"{address}, this machine only, no API key")
    return Line("access", False, f"{address} without an API key", "run `temi keys create NAME`")


def _has_key(settings: Settings) -> bool:
    try:
        return has_key(settings)
    except OperationalError:
        return False  # what is wrong with the database is a line of its own


def _print(lines: list[Line]) -> None:
    table = Table(title="temi doctor", title_justify="left")
    for column in ("", "what", "found", "what to do"):
        table.add_column(column, overflow="fold")
    for line in lines:
        mark = "[green]ok[/]" if line.ok else "[red]no[/]"
        table.add_row(mark, line.what, escape(line.found), escape(line.hint))
    results.print(table)
