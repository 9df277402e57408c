"""A fast backbone that counts its images, and datasets to embed with it."""

import hashlib
import io

import numpy as np
import torch
from PIL import Image as PillowImage
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session
from torch import nn

from app.core.datasets.rows import create_dataset, fingerprint
from app.core.jobs.lifecycle import create_job
from app.core.platform.ids import new_id
from app.core.platform.tables import Dataset, Image, Job
from app.core.runtime import Runtime
from app.core.storage.keys import blob_key
from temi.backbones.base import Backbone, hash_tensors
from temi.backbones.extractor import Features
from temi.backbones.preprocessing import Pixels, Preprocessing

DIM = 12


class CountingBackbone(Backbone):
    """Counts the images that were embedded."""

    images = 0

    def embed(self, pixels: Pixels, threads: int = 1) -> Features:
        self.images += len(pixels)
        return super().embed(pixels, threads)


def tiny_backbone(seed: int = 0) -> CountingBackbone:
    generator = torch.Generator().manual_seed(seed)
    module = nn.Sequential(
        nn.Conv2d(3, 8, 4, stride=4), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(32, DIM)
    )
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return CountingBackbone(
        name="tiny",
        module=module.eval(),
        preprocessing=Preprocessing(
            size=8, resize=8, interpolation="bicubic", mean=(127.0,) * 3, std=(128.0,) * 3
        ),
        weights_hash=hash_tensors(module.state_dict()),
        device=torch.device("cpu"),
    )


def picture(seed: int, base: tuple[int, int, int] = (128, 128, 128)) -> bytes:
    """A PNG of noise around a color."""
    noise = np.random.default_rng(seed).normal(0, 20, (8, 8, 3)) + np.array(base)
    out = io.BytesIO()
    PillowImage.fromarray(noise.clip(0, 255).astype(np.uint8)).save(out, "PNG")
    return out.getvalue()


def add_dataset(runtime: Runtime, pictures: list[bytes], labels: list[str] | None = None) -> str:
    with runtime.db.write() as session:
        dataset = create_dataset(session, tenant="default", name="tiny")
        dataset.status = "ready"
    append(runtime, dataset.id, pictures, labels)
    return dataset.id


def append(
    runtime: Runtime, dataset_id: str, pictures: list[bytes], labels: list[str] | None = None
) -> None:
    """Adds a dataset as an ingest does."""
    with runtime.db.write() as session:
        dataset = session.get_one(Dataset, dataset_id)
        for number, data in enumerate(pictures):
            sha256 = hashlib.sha256(data).hexdigest()
            runtime.storage.write(blob_key(sha256), data)
            position = dataset.end_position
            session.add(
                Image(
                    id=new_id("img"),
                    dataset_id=dataset_id,
                    position=position,
                    name=f"{position}.png",
                    sha256=sha256,
                    width=8,
                    height=8,
                    format="PNG",
                    bytes=len(data),
                    label=labels[number] if labels else None,
                )
            )
            dataset.end_position += 1
        session.flush()
        _settle(session, dataset_id)


def remove(runtime: Runtime, dataset_id: str, positions: list[int]) -> None:
    with runtime.db.write() as session:
        session.execute(
            delete(Image).where(Image.dataset_id == dataset_id, Image.position.in_(positions))
        )
        _settle(session, dataset_id)


def add_job(runtime: Runtime, dataset_id: str, kind: str = "cluster", **config: object) -> Job:
    with runtime.db.write() as session:
        dataset = session.get_one(Dataset, dataset_id)
        tenant = dataset.tenant
        config = {"precision": "float32", **config}
        return create_job(session, tenant=tenant, kind=kind, dataset=dataset, config=config)


def _settle(session: Session, dataset_id: str) -> None:
    dataset = session.get_one(Dataset, dataset_id)
    dataset.fingerprint = fingerprint(session, dataset_id)
    count = select(func.count()).select_from(Image).where(Image.dataset_id == dataset_id)
    dataset.image_count = session.scalar(count) or 0
