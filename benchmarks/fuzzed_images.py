"""Sends ten thousand damaged image files to the decoder and to the API; neither may crash.

.venv/bin/python -m benchmarks.fuzzed_images
"""

import argparse
import collections
import io
import logging
import random
import tempfile
import time
import zipfile
from pathlib import Path

import structlog
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.core.datasets.images import MEDIA_TYPES, decode_image
from app.core.platform.errors import ImageRejected
from app.core.platform.migrations import upgrade
from app.core.platform.settings import Settings
from app.core.platform.tables import Image
from app.core.runtime import Runtime
from app.main import create_app
from tests.api.conftest import work_on
from tests.images import image_bytes

SLOW_SECONDS = 1.0


def samples() -> list[bytes]:
    """Return small files of every format and of several pixel modes."""
    found = []
    for format_ in MEDIA_TYPES:
        for mode, color in (("RGB", (90, 120, 30)), ("L", 77), ("RGBA", (9, 99, 199, 50))):
            for size in ((9, 7), (64, 48)):
                try:
                    found.append(image_bytes(format_, color, size, mode))  # type: ignore[arg-type]
                except OSError:  # the format does not support the mode
                    continue
    return found


def damage(data: bytes, rng: random.Random) -> bytes:
    """Damage a file in one of several ways, by accident or as an attack."""
    way = rng.randrange(6)
    broken = bytearray(data)
    if way == 0:
        return data[: rng.randrange(len(data))]
    if way == 1:
        for _ in range(rng.randint(1, 8)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
    elif way == 2:  # numbers in headers
        at = rng.randrange(max(1, min(len(broken) - 4, 64)))
        broken[at : at + 4] = rng.choice([b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0"])
    elif way == 3:
        at = rng.randrange(len(broken))
        broken[at:at] = rng.randbytes(rng.randint(1, 64))
    elif way == 4:
        at, length = rng.randrange(len(broken)), rng.randint(1, 64)
        del broken[at : at + length]
    else:
        at = rng.randrange(min(16, len(broken)), len(broken) + 1)
        broken[at:] = rng.randbytes(rng.randint(0, 512))
    return bytes(broken)


def fuzz(count: int, seed: int = 0) -> dict[str, float]:
    rng, originals = random.Random(seed), samples()
    outcomes: collections.Counter[str] = collections.Counter()
    slowest = 0.0
    for _ in range(count):
        data = damage(rng.choice(originals), rng)
        started = time.perf_counter()
        try:
            decode_image(data)
            outcome = "read"
        except ImageRejected:
            outcome = "refused"
        except BaseException:  # noqa: BLE001 - the benchmark searches for any error
            outcome = "crashed"
        seconds = time.perf_counter() - started
        slowest = max(slowest, seconds)
        outcomes[outcome] += 1
        outcomes["slow"] += seconds > SLOW_SECONDS
    return {"files": count, "slowest seconds": round(slowest, 3), **outcomes}


def packed(count: int, seed: int = 0) -> bytes:
    """Return the same files as one archive."""
    rng, originals = random.Random(seed), samples()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number in range(count):
            archive.writestr(f"{number}.jpg", damage(rng.choice(originals), rng))
    return out.getvalue()


def fuzz_service(count: int, seed: int = 0) -> dict[str, int]:
    """Upload all files, get a thumbnail of each accepted one, and count the statuses."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(_env_file=None, data_dir=Path(folder), max_bad_fraction=1.0)
        runtime = Runtime(settings)
        upgrade(runtime.db)
        statuses: collections.Counter[str] = collections.Counter()
        with TestClient(create_app(settings), raise_server_exceptions=False) as client:
            job = client.post("/v1/datasets", content=packed(count, seed))
            statuses[f"upload {job.status_code}"] += 1
            work_on(runtime, job.json()["id"])
            with runtime.db.read() as session:
                images = session.scalars(select(Image.id)).all()
            for image in images:
                answer = client.get(f"/v1/images/{image}/thumbnail?size=64")
                statuses[f"thumbnail {answer.status_code}"] += 1
            done = client.get(f"/v1/jobs/{job.json()['id']}").json()
        runtime.db.dispose()
    return {**statuses, **done["counts"], f"job {done['status']}": 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    started = time.monotonic()
    print(fuzz(arguments.count, arguments.seed), f"in {time.monotonic() - started:.0f} s")
    print(fuzz_service(arguments.count, arguments.seed))


if __name__ == "__main__":
    main()
