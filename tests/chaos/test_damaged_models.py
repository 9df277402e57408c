"""A model whose files have changed is not served; other models are."""

import random
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from app.core.platform.tables import ModelVersion
from tests.chaos.conftest import StartSite
from tests.chaos.site import Site
from tests.chaos.work import cluster, job_row, upload
from tests.images import png_bytes
from tests.promises import Promises
from tests.waiting import wait_until

_FLIPS = 1_000
_MODEL = "damaged"
_PICTURE = {"files": ("new.png", png_bytes("teal"))}
_SAID_NO = (503, "model_integrity")


@pytest.mark.usefixtures("only_in_full")
def test_flipped_bits(
    start_site: StartSite, archives: Path, rng: random.Random, promises: Promises
) -> None:
    served, answered = 0, 0
    with start_site(workers=1) as site, site.http() as http:
        files = _second_version(site, archives)
        wait_until(lambda: _ask(http, 1)[0] == 200, "the first version is loaded")
        for number in range(_FLIPS):
            path = files[number % len(files)]
            whole = path.read_bytes()
            path.write_bytes(_flipped(whole, rng))
            moved = _said(http.put(f"/v1/models/{_MODEL}/aliases/live", json={"version": 2}))
            served += moved != _SAID_NO or _ask(http, 2) != _SAID_NO
            answered += _ask(http, 1)[0] == 200
            path.write_bytes(whole)
        mended = _ask(http, 2)[0]
    promises.keep(
        "corrupt model",
        f"never served; {_FLIPS:,} times one bit flipped in one of its files",
        f"{served} served; the version beside it answered {answered:,} times; after repair: "
        f"{mended}",
        kept=served == 0 and answered == _FLIPS and mended == 200,
    )


def _second_version(site: Site, archives: Path) -> list[Path]:
    """Damages a model that is in use; returns its files."""
    with site.client() as client:
        ingest = client.wait(upload(client, 0, archives))
        dataset_id = job_row(site.runtime, ingest.id).dataset_id
        for _ in range(2):
            client.wait(cluster(client, dataset_id, _MODEL, steps=5))
    with site.runtime.db.read() as session:
        second = session.scalars(select(ModelVersion).where(ModelVersion.version == 2)).one()
    return [site.runtime.storage.path(f"{second.folder}/{name}") for name in sorted(second.files)]


def _flipped(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data)
    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def _ask(http: httpx.Client, version: int) -> tuple[int, str | None]:
    return _said(http.post(f"/v1/models/{_MODEL}/versions/{version}:predict", files=_PICTURE))


def _said(answer: httpx.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json().get("code")
