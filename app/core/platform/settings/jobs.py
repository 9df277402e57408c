"""Jobs and workers: devices, limits of jobs, leases, webhooks."""

import base64
import os
import re
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from app.core.platform.resources import RESOURCES
from app.core.platform.settings.types import GiB, Names


class JobSettings(BaseSettings):
    device: str = Field(default="auto", description="`auto`, `cpu`, `cuda` or `cuda:N`.")
    torch_threads: int = Field(
        default=0,
        ge=0,
        description="CPU threads for computing; 0 means one per core. Results do not depend on it.",
    )
    train_processes: int = Field(
        default=0,
        ge=0,
        description="Processes that share the heads of one training; 0 means one per GPU of this "
        "machine, and one without a GPU.",
    )
    weights_dir: Path | None = Field(
        default=None,
        description="Folder with weight files of further backbones; `temi backbones fetch NAME` "
        "downloads into it.",
    )
    onnx_dir: Path | None = Field(
        default=None,
        description="Folder for backbones that were converted to ONNX, at most 32; default: `onnx` "
        "in the data folder.",
    )
    embed_shard: int = Field(
        default=1024, ge=1, description="Images per resumable shard of the embed stage."
    )
    mine_shard: int = Field(
        default=100_000,
        ge=1,
        description="Rows per shard of the mine stage; a dataset of no more rows is not sharded.",
    )
    mine_bytes: int = Field(
        default=8 * GiB,
        gt=0,
        description="Memory for the features while neighbors are searched. If they need more, they "
        "are held as float16, and if that is not enough, all pairs are compared. Set "
        "the same value for all workers, so that they find the same neighbors.",
    )
    checkpoint_seconds: float = Field(
        default=15.0, gt=0, description="Time between training checkpoints."
    )
    # A person or a script with a sensible plan stays far below it; each waiting job costs a row.
    max_open_jobs: int = Field(
        default=100,
        ge=1,
        description="Maximum unfinished jobs of a tenant, queued and running; 429.",
    )
    # A fixed size and no share of this machine's memory: the same request gets the same response
    # everywhere. 16 heads for 25,000 clusters of a million images stay below it.
    max_job_bytes: int = Field(
        default=16 * GiB,
        gt=0,
        description="Maximum estimated memory of a job's training; 422. Do not set it above the "
        "memory of the workers.",
    )
    # 2.3 GB of SQLite: 460 bytes each, with the indexes. Twelve clusterings of 400,000 images fit.
    max_sweep_assignments: int = Field(
        default=5_000_000,
        ge=1,
        description="Maximum assignments that a sweep keeps: images times clusterings. Of a larger "
        "sweep only the clusterings around the suggested one are kept, at least that one.",
    )

    lease_seconds: float = Field(
        default=60.0,
        gt=0,
        description="A job without a heartbeat for this time is given to another worker.",
    )
    heartbeat_seconds: float = Field(
        default=10.0, gt=0, description="Maximum time between heartbeats of a worker."
    )
    self_kill_seconds: float = Field(
        default=42.0,
        gt=0,
        description="A worker that cannot reach the database for this time kills its job process.",
    )
    maintenance_seconds: float = Field(
        default=5.0,
        gt=0,
        description="Time between a worker's checks for waiting jobs, due webhooks and files to "
        "delete.",
    )
    max_crashes: int = Field(
        default=3, ge=1, description="Crashes without progress after which a job fails."
    )
    # The longest silence of a healthy stage that was measured or estimated at ten million images
    # is some minutes; half an hour leaves room for slow disks and crowded machines.
    stall_seconds: float = Field(
        default=1800.0,
        gt=0,
        description="A job without progress for this time fails with the code `stalled`.",
    )
    worker_takes: Names = Field(
        default=RESOURCES,
        description="Resources of a worker, comma-separated: `cpu` (ingest, map, export, gather, "
        "shards of mining), `gpu` (all that trains or embeds, on the CPU if there is no GPU).",
    )
    webhook_hosts: Names = Field(
        default=(),
        description="Hosts, comma-separated, that webhooks may be sent to; empty: none.",
    )
    webhook_secret: SecretStr | None = Field(
        default=None,
        description="Signs webhooks (Standard Webhooks): `whsec_` and base64 of 24 to 64 bytes.",
    )

    @field_validator("device")
    @classmethod
    def _check_device(cls, device: str) -> str:
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
            raise ValueError("must be auto, cpu, cuda or cuda:N")
        return device

    @field_validator("worker_takes")
    @classmethod
    def _check_resources(cls, takes: tuple[str, ...]) -> tuple[str, ...]:
        if not takes or not set(takes) <= set(RESOURCES):
            raise ValueError(f"must be some of {', '.join(RESOURCES)}")
        return takes

    @field_validator("webhook_secret")
    @classmethod
    def _check_secret(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is None:
            return None
        text = secret.get_secret_value().removeprefix("whsec_")
        try:
            size = len(base64.b64decode(text + "=" * (-len(text) % 4), validate=True))
        except ValueError:
            size = 0
        if not 24 <= size <= 64:
            raise ValueError("must be `whsec_` and base64 of 24 to 64 bytes")
        return secret

    @model_validator(mode="after")
    def _check_lease_times(self) -> Self:
        if not self.heartbeat_seconds < self.self_kill_seconds < self.lease_seconds:
            raise ValueError(
                "TEMI_HEARTBEAT_SECONDS < TEMI_SELF_KILL_SECONDS < TEMI_LEASE_SECONDS must hold, "
                "or two workers could run one job"
            )
        return self

    @property
    def threads(self) -> int:
        return self.torch_threads or os.cpu_count() or 1
