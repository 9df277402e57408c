"""Speed of an ingest job beside what bounds it: reading, decoding, and writing files.

Ways alternate, so that a busy machine slows all of them alike. Files of all rounds stay until the
end: ext4 does not use the inodes of deleted files again for a minute or more, and looking for
others makes creating a file many times slower.

.venv/bin/python -m benchmarks.ingest --images 10000
.venv/bin/python -m benchmarks.ingest --archive photos.zip
"""

import argparse
import statistics
import tempfile
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

from app.core.datasets.rows import create_dataset
from app.core.jobs.lifecycle import Progress, claim
from app.core.jobs.requests.ingest import create_ingest_job
from app.core.platform.ids import new_id
from app.core.platform.migrations import upgrade
from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from app.core.storage.keys import upload_key
from benchmarks.large_collection import bare_rate, tiny_image, write_zip
from worker.context import JobContext
from worker.jobs.ingest import run_ingest


def ingest(archive: Path, folder: Path) -> float:
    """Seconds of an ingest job in this process, into an empty database and storage."""
    runtime = Runtime(Settings(data_dir=folder))
    upgrade(runtime.db)
    key = upload_key(new_id("up"))
    runtime.storage.write(key, archive.read_bytes())
    with runtime.db.write() as session:
        dataset = create_dataset(session, tenant="default", name="bench")
        source = {"type": "archive", "key": key, "labels_from": "folder"}
        job = create_ingest_job(session, tenant="default", dataset=dataset, source=source)
    with runtime.db.write() as session:
        claimed = claim(session, job.id, worker="bench", lease_seconds=3600)
    assert claimed is not None
    runtime.decoders.prepare()
    runtime.decoders.inspect_all([tiny_image(0), tiny_image(1)])  # waits for a process
    started = time.perf_counter()
    run_ingest(JobContext(runtime, claimed, claimed.fence, _ignore))
    return time.perf_counter() - started


def _ignore(_progress: Progress) -> None:
    pass


def _read(archive: Path) -> list[bytes]:
    with zipfile.ZipFile(archive) as opened:
        return [opened.read(member) for member in opened.infolist() if not member.is_dir()]


def decode(archive: Path, folder: Path) -> float:
    """Seconds of only decoding, one by one, with the threads of an ingest job."""
    runtime = Runtime(Settings(data_dir=folder))
    runtime.decoders.prepare()
    data = _read(archive)
    started = time.perf_counter()
    with ThreadPoolExecutor(runtime.settings.threads) as pool:
        for _ in pool.map(runtime.decoders.inspect, data):
            pass
    return time.perf_counter() - started


def write_files(archive: Path, folder: Path) -> float:
    """Seconds of only creating and renaming one file per image, without a sync."""
    data = _read(archive)
    for first in range(256):
        (folder / f"{first:02x}").mkdir()
    started = time.perf_counter()
    for image in data:
        temporary = folder / uuid4().hex
        temporary.write_bytes(image)
        temporary.replace(folder / temporary.name[:2] / temporary.name)
    return time.perf_counter() - started


def measure(archive: Path, count: int, rounds: int, parent: Path) -> None:
    ways: dict[str, Callable[[Path, Path], float]] = {
        "ingest": ingest,
        "decode alone": decode,
        "write files alone": write_files,
    }
    rates: dict[str, list[float]] = {way: [] for way in ways}
    rates["read and hash alone"] = [bare_rate(archive) for _ in range(rounds)]
    for _ in range(rounds):
        for name, way in ways.items():
            folder = Path(tempfile.mkdtemp(dir=parent))
            rates[name].append(count / way(archive, folder))
    for name, found in rates.items():
        print(f"{name:20s} {statistics.median(found):9.0f} images/s  {[round(r) for r in found]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10_000, help="tiny images to draw")
    parser.add_argument("--archive", type=Path, help="a zip of images instead")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        archive = arguments.archive or Path(name) / "tiny.zip"
        if arguments.archive is None:
            write_zip(archive, arguments.images)
        with zipfile.ZipFile(archive) as opened:
            count = sum(not member.is_dir() for member in opened.infolist())
        measure(archive, count, arguments.rounds, Path(name))


if __name__ == "__main__":
    main()
