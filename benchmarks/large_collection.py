"""Runs a large collection of tiny images through the whole service.

Prints the rate of each step, the memory of each process, the time of an early and a late page
of a list, and the rate of a plain loop that reads and hashes the same zip.

.venv/bin/python -m benchmarks.large_collection --images 100000
"""

import argparse
import hashlib
import io
import statistics
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from PIL import Image

from benchmarks.live import running_service
from benchmarks.upload_memory import MB, PeakMemory
from temi_client import TemiClient

GROUPS = 10
FORMATS = ("csv", "jsonl", "parquet", "coco", "label_studio", "image_folder", "huggingface")


def tiny_image(number: int) -> bytes:
    """An image of sixteen pixels, with the colors of its group and individual noise."""
    rng = np.random.default_rng(number)
    base = np.random.default_rng(number % GROUPS).integers(0, 200, (4, 4, 3))
    pixels = base.repeat(4, axis=0).repeat(4, axis=1) + rng.integers(0, 56, (16, 16, 3))
    out = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(out, "JPEG", quality=80)
    return out.getvalue()


def write_zip(path: Path, count: int) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for number in range(count):
            archive.writestr(f"group{number % GROUPS}/{number:07d}.jpg", tiny_image(number))


def bare_rate(path: Path) -> float:
    """Return the images/s of only reading the zip and hashing each member."""
    started = time.perf_counter()
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        for name in names:
            hashlib.sha256(archive.read(name)).hexdigest()
    return len(names) / (time.perf_counter() - started)


def timed_job(client: TemiClient, job: Any, what: str, count: int) -> Any:
    started = time.monotonic()
    done = client.wait(job.id)
    seconds = time.monotonic() - started
    stages = {name: timing["seconds"] for name, timing in done.timings.items()}
    print(f"{what:20s} {seconds:8.1f} s {count / seconds:9.0f} images/s  {stages}", flush=True)
    return done


def page_costs(url: str, path: str, pages: int) -> None:
    """Measure the first page of ten rows and a late one, alternately."""
    cursor = None
    for _ in range(pages // 100):
        cursor = httpx.get(f"{url}{path}", params=_asked(1000, cursor)).json()["next_cursor"]
        if cursor is None:
            raise SystemExit("there are fewer images than pages: reduce the number of pages")
    times: dict[str | None, list[float]] = {None: [], cursor: []}
    with httpx.Client(base_url=url) as http:
        for _ in range(100):
            for start, taken in times.items():
                started = time.perf_counter()
                http.get(path, params=_asked(10, start)).raise_for_status()
                taken.append(1000 * (time.perf_counter() - started))
    first, last = (statistics.median(taken) for taken in times.values())
    what = path.rpartition("/")[2]
    print(f"{what}: page 1 {first:.2f} ms, page {pages} {last:.2f} ms, ratio {last / first:.2f}")


def _asked(limit: int, cursor: str | None) -> dict[str, Any]:
    return {"limit": limit} | ({"cursor": cursor} if cursor else {})


def measure(url: str, pid: int, archive: Path, count: int, steps: int) -> None:
    memory = PeakMemory(pid)
    memory.start()
    with TemiClient(url, timeout=600) as client:
        started = time.monotonic()
        job = client.upload_dataset(archive, name="tiny", labels_from="folder")
        print(f"upload               {time.monotonic() - started:8.1f} s", flush=True)
        timed_job(client, job, "ingest", count)
        page_costs(url, f"/v1/datasets/{job.dataset_id}/images", count // 10 - 100)
        done = timed_job(
            client, client.cluster(job.dataset_id, GROUPS, steps=steps), "cluster", count
        )
        clustering_id = done.result["clustering_id"]
        page_costs(url, f"/v1/clusterings/{clustering_id}/assignments", count // 10 - 100)
        for name in FORMATS:
            asked = client.create_job(kind="export", clustering_id=clustering_id, format=name)
            made = timed_job(client, asked, f"export {name}", count)
            print(f"{'':20s} {made.result['bytes'] / MB:8.1f} MB", flush=True)
    memory.stop()
    for kind, used in sorted(memory.peaks.items()):
        print(f"peak memory of {kind:7s} {used / MB:6.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = folder / "tiny.zip"
        write_zip(archive, arguments.images)
        print(f"zip                  {archive.stat().st_size / MB:8.1f} MB")
        print(f"read and hash alone  {bare_rate(archive):18.0f} images/s", flush=True)
        with running_service(folder) as (url, pid):
            measure(url, pid, archive, arguments.images, arguments.steps)


if __name__ == "__main__":
    main()
