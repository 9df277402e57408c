"""What the service is and allows."""

from temi_client.models.base import ApiModel


class StorageUse(ApiModel):
    used_bytes: int  # images and imported models of the key's tenant
    free_bytes: int | None = None  # of the disk; None with a bucket
    quota_bytes: int | None = None  # of the key


class BackboneState(ApiModel):
    name: str
    available: bool


class System(ApiModel):
    version: str
    mode: str  # embedded or distributed
    device: str
    storage: StorageUse
    limits: dict[str, int | None]  # None: there is no such limit
    backbones: list[BackboneState]
    auto_backbone: str | None = None  # what the backbone "auto" means now
