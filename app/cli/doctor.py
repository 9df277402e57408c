"""`temi doctor`: checks packages, device, database, broker, storage, backbones and access."""

import importlib.metadata
import json
import platform
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import typer
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from app.cli.exposure import has_key
from app.cli.options import AsJson
from app.cli.output import print_table
from app.core.platform.errors import InvalidRequest
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
class DoctorCheck:
    name: str
    ok: bool
    found: str
    hint: str = ""


def doctor(as_json: AsJson = False) -> None:
    """Check this installation; exit with 1 if a check fails."""
    settings = get_settings()
    checks = [
        *_packages(),
        _device(settings),
        *_parts(settings),
        *_backbones(settings),
        _space(settings),
        _access(settings),
    ]
    if as_json:
        print(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        rows = [("ok" if one.ok else "no", one.name, one.found, one.hint) for one in checks]
        print_table("temi doctor", ["ok", "check", "found", "hint"], rows)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def _packages() -> Iterator[DoctorCheck]:
    yield DoctorCheck("python", True, platform.python_version())
    for name, distribution in _PACKAGES.items():
        try:
            found = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            if name == "faiss":  # the build without CUDA
                found = importlib.metadata.version("faiss-cpu")
            else:
                yield DoctorCheck(name, False, "missing", "run `make install`")
                continue
        yield DoctorCheck(name, True, found)


def _device(settings: Settings) -> DoctorCheck:
    import torch

    from temi.device import resolve_device

    try:
        device = resolve_device(settings.device)
    except Exception as error:  # noqa: BLE001 - any failure is the result of the check
        return DoctorCheck(
            "device", False, str(error), "set TEMI_DEVICE=auto, or check the GPU's driver"
        )
    if device.type == "cuda":
        return DoctorCheck("device", True, f"{device} ({torch.cuda.get_device_name(device)})")
    return DoctorCheck("device", True, f"{device}, {settings.threads} threads")


def _parts(settings: Settings) -> Iterator[DoctorCheck]:
    from app.core.health import Health
    from app.core.runtime import Runtime
    from temi.backbones.catalog import DEFAULT_BACKBONE

    locations = {
        "database": make_url(settings.sqlalchemy_url).render_as_string(hide_password=True),
        "migrations": "tables",
        "broker": _without_password(settings),
        "storage": settings.storage_url or str(settings.blob_dir.absolute()),
        "weights": DEFAULT_BACKBONE,
        "workers": "queue",
    }
    for name, result in Health(Runtime(settings)).check().items():
        found = locations[name] if result.detail is None else f"{locations[name]}: {result.detail}"
        yield DoctorCheck(name, result.ok, found, result.hint or "")


def _backbones(settings: Settings) -> Iterator[DoctorCheck]:
    from app.cli.doctor_backbones import better_ones, describe_choice

    try:
        yield DoctorCheck("backbone", True, describe_choice(settings))
        for found, command in better_ones(settings):
            yield DoctorCheck("better one", True, found, command)
    except InvalidRequest as error:
        yield DoctorCheck("backbone", False, error.detail, "run `make install` again")


def _without_password(settings: Settings) -> str:
    if settings.broker_url.startswith("filesystem:"):
        return f"filesystem, {settings.broker_dir.absolute()}"
    return make_url(settings.broker_url).render_as_string(hide_password=True)


def _space(settings: Settings) -> DoctorCheck:
    free = shutil.disk_usage(settings.local_dir).free
    ok = free > _LOW_SPACE
    return DoctorCheck("disk", ok, f"{free / GiB:.1f} GiB free", "" if ok else "free some space")


def _access(settings: Settings) -> DoctorCheck:
    address = f"{settings.host}:{settings.port}"
    if _has_key(settings):
        return DoctorCheck("access", True, f"{address}, with an API key")
    if settings.loopback_only:
        return DoctorCheck("access", True, f"{address}, this machine only, no API key")
    return DoctorCheck(
        "access", False, f"{address} without an API key", "run `temi keys create NAME`"
    )


def _has_key(settings: Settings) -> bool:
    try:
        return has_key(settings)
    except OperationalError:
        return False  # the check of the database reports the failure
