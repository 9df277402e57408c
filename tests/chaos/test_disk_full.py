"""A full disk gives a clear error, leaves no partial results and damages no data."""

import errno
import io
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from temi_client import JobFailed, TemiClient
from tests.chaos.conftest import StartSite
from tests.chaos.work import dataset_bits, job_row, undisturbed
from tests.images import ZIP, zip_of
from tests.promises import Promises, Row
from tests.waiting import LONG_SECONDS

_DISK_MB = 24


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system for the data folder."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MB}m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(start_site: StartSite, disk: Path, archives: Path, promises: Promises) -> None:
    with start_site(data_dir=disk, workers=1) as site, site.client(retries=0) as client:
        (kept,), bits = undisturbed(site, archives, [0])
        kept_id = job_row(site.runtime, kept).dataset_id

        _fill(disk, leave=0)
        refused = httpx.post(
            f"{site.urls[0]}/v1/datasets?name=refused",
            content=_noise(2),
            headers=ZIP,
            timeout=LONG_SECONDS,
        )
        _fill(disk, leave=6)  # MB: enough for the upload, not for the images
        job = client.upload_dataset(_file(archives, 4), name="half")
        half_id = job_row(site.runtime, job.id).dataset_id
        code = _failure(client, job.id)
        half = client.dataset(half_id)
        listed = [dataset.id for dataset in client.datasets()]
        (disk / "filler").unlink()
        client.retry(job.id)
        again = client.wait(job.id)
        images = client.dataset(half_id).image_count
        intact = dataset_bits(site.runtime, kept_id) == bits[0]
    promises.keep_all(
        Row(
            "disk full: the API",
            "507 `storage_full`, no dataset",
            f"{refused.status_code} `{refused.json().get('code')}`, "
            f"{len(set(listed) - {kept_id, half_id})} datasets",
            refused.status_code == 507 and set(listed) == {kept_id, half_id},
        ),
        Row(
            "disk full: a job",
            "`storage_full`, no partial dataset, old data intact, a later try succeeds",
            f"`{code}`, dataset {half.status} with {half.image_count} images, old data "
            f"{'intact' if intact else 'HARMED'}, then {again.status} with {images} images",
            code == "storage_full"
            and (half.status, half.image_count, intact) == ("failed", 0, True)
            and (again.status, images) == ("succeeded", 40),
        ),
    )


def _failure(client: TemiClient, job_id: str) -> str | None:
    with pytest.raises(JobFailed) as caught:
        client.wait(job_id)
    return caught.value.job.error.code if caught.value.job.error else None


def _fill(disk: Path, leave: int) -> None:
    """Writes a file so that only this many MB are left."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    try:
        filler.write_bytes(bytes(max(0, free - leave * 1_000_000)))
    except OSError as error:  # the service has written in the meantime
        if error.errno != errno.ENOSPC or leave:
            raise


def _noise(megabytes: int) -> bytes:
    return zip_of({f"{n}.bmp": _bitmap(n, megabytes * 25_000) for n in range(40)})


def _file(folder: Path, megabytes: int) -> Path:
    path = folder / f"noise-{megabytes}.zip"
    path.write_bytes(_noise(megabytes))
    return path


def _bitmap(seed: int, size: int) -> bytes:
    """Returns an image that does not compress."""
    side = int((size / 3) ** 0.5)
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "BMP")
    return out.getvalue()
