"""What this installation is and allows: version, device, storage, limits, backbones."""

from fastapi import APIRouter

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import ActorDep, RuntimeDep, SessionDep
from app.api.http.errors import responses
from app.core.access.quota import stored_bytes
from app.core.jobs.workers import worker_devices
from app.core.models.backbones import auto_backbone_name
from app.core.platform.version import package_version
from app.core.storage.space import free_bytes
from temi.backbones.catalog import list_backbones

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/system",
    tags=["system"],
    responses=responses(422, 503),
)


@router.get("", summary="Read the version, the storage and the limits of the service")
def read_system(runtime: RuntimeDep, session: SessionDep, actor: ActorDep) -> schemas.System:
    """What a user can meet: the device that computes, the bytes that your tenant may still store,
    the limits of requests, and the backbones with a short name."""
    settings = runtime.settings
    devices = worker_devices(session, settings.lease_seconds)
    return schemas.System(
        version=package_version(),
        mode="embedded" if settings.has_local_workers else "distributed",
        device=", ".join(devices) or settings.device,
        storage=schemas.StorageUse(
            used_bytes=stored_bytes(session, actor.tenant),
            free_bytes=free_bytes(settings),
            quota_bytes=actor.storage_bytes,
        ),
        limits=schemas.Limits.of(settings),
        backbones=[
            schemas.BackboneState(name=one.name, available=one.available)
            for one in list_backbones(settings.weights_dir)
        ],
        auto_backbone=auto_backbone_name(settings),
    )
