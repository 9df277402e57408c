"""Workers."""

from datetime import datetime

from temi_client.models.base import ApiModel


class Worker(ApiModel):
    name: str
    host: str
    pid: int
    takes: list[str]
    device: str
    version: str
    started_at: datetime
    seen_at: datetime
    busy: bool = False
    job_id: str | None = None  # only of the key's tenant
    stage: str | None = None
