"""Predictions over HTTP compared with the bare model, alternately on the same machine.

.venv/bin/python -m benchmarks.serving
.venv/bin/python -m benchmarks.serving --overload-minutes 10 --predict-images 10000
"""

import argparse
import io
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil

from benchmarks import bare_model
from benchmarks.embedding import draw_photo
from benchmarks.http_load import OneClient, Result, multipart_request, run_load
from benchmarks.live import running_service
from temi_client import TemiClient

MODEL = "photos"
MB = 1024 * 1024
_SINGLES = 60  # single-image requests per round
Row = dict[str, Any]


def photos(count: int, width: int, height: int) -> list[bytes]:
    made = []
    for seed in range(count):
        out = io.BytesIO()
        draw_photo(width, height, seed).save(out, "JPEG", quality=85)
        made.append(out.getvalue())
    return made


def train(client: TemiClient, images: list[bytes], folder: Path) -> str:
    """Create a dataset and train a model quickly; its quality does not matter here."""
    archive = folder / "photos.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for number, data in enumerate(images):
            target.writestr(f"{number:05d}.jpg", data)
    job = client.upload_dataset(archive, name=MODEL)
    client.wait(job.id)
    client.wait(client.cluster(job.dataset_id, 10, steps=50, model_name=MODEL).id)
    return str(job.dataset_id)


class Service:
    """The running service, and prepared requests for it."""

    def __init__(self, url: str, images: list[bytes]) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self.url = url
        self.address = (parts.hostname, parts.port)
        path = f"/v1/models/{MODEL}:predict"
        self.requests = [
            multipart_request(parts.netloc, path, f"{number}.jpg", data)
            for number, data in enumerate(images)
        ]

    def warm_up(self) -> Row:
        """Wait until the model is loaded; returns its backend."""
        until = time.monotonic() + 180
        while time.monotonic() < until:
            run_load(self.address, self.requests, clients=1, seconds=0.2)
            loaded = httpx.get(f"{self.url}/v1/serving").json()["data"]
            if loaded:
                found: Row = loaded[0]
                return found
            time.sleep(1)
        raise RuntimeError("the model was not loaded in time")

    def load(self, clients: int, seconds: float, rate: float | None = None) -> Result:
        return run_load(self.address, self.requests, clients=clients, seconds=seconds, rate=rate)


def compare(
    service: Service, bare: Any, images: list[bytes], clients: int, rounds: int, seconds: float
) -> Iterator[Row]:
    """Alternate between the bare model and the service, and for single images per image."""
    for number in range(rounds):
        bare.send(("rate", images, seconds))
        bare_rate = bare.recv()
        crowd = service.load(clients, seconds)
        rate = crowd.count(200) / seconds
        client = OneClient(service.address)
        bare_ms, alone_ms = [], []
        failed = sum(crowd.count(s) for s in crowd.taken if s != 200)
        for data, request in zip(images[:_SINGLES], service.requests, strict=False):
            bare.send(("milliseconds", data))
            bare_ms.append(bare.recv())
            status, milliseconds = client.ask(request)
            alone_ms.append(milliseconds)
            failed += status != 200
        yield {
            "round": number + 1,
            "bare images/s": bare_rate,
            f"{clients} clients images/s": rate,
            "throughput": rate / bare_rate,
            "bare ms": statistics.median(bare_ms),
            "one client ms": statistics.median(alone_ms),
            "latency": statistics.median(alone_ms) / statistics.median(bare_ms),
            "failed": failed,
        }


def middle(rows: list[Row]) -> Row:
    """The median of every column."""
    return {"round": "median"} | {
        name: statistics.median(row[name] for row in rows) for name in rows[0] if name != "round"
    }


def overload(service: Service, pid: int, capacity: float, minutes: float) -> Row:
    """Send twice the maximum rate; compare the memory at the end with that after a tenth."""
    piece = minutes * 60 / 10
    found, memory = Result(), []
    for _ in range(10):
        found.join(service.load(600, piece, rate=2 * capacity))
        memory.append(_memory(pid))
    answered = sorted(found.taken.get(200, []))
    return {
        "minutes": minutes,
        "asked/s": 2 * capacity,
        "answered/s": len(answered) / (minutes * 60),
        "answered": len(answered),
        "429": found.count(429),
        "other": sum(found.count(status) for status in found.taken if status not in (200, 429)),
        "broken": found.broken,
        "p50 ms": answered[len(answered) // 2] * 1e3,
        "p99 ms": answered[int(len(answered) * 0.99)] * 1e3,
        "MB first": memory[0] / MB,
        "MB last": memory[-1] / MB,
        "growth": memory[-1] / memory[0] - 1,
    }


def _memory(pid: int) -> int:
    """Return the memory of the API and of its prediction process."""
    total = 0
    for process in psutil.Process(pid).children(recursive=True):
        line = " ".join(process.cmdline())
        if "app.server" in line or "app.core.serving" in line:
            total += process.memory_info().rss
    return total


def predict_job(client: TemiClient, folder: Path, count: int) -> Row:
    """Label a dataset of different small photos with one predict job."""
    small = photos(50, 320, 240)
    archive = folder / "many.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for number in range(count):
            target.writestr(f"{number:06d}.jpg", small[number % 50] + number.to_bytes(4))
    job = client.upload_dataset(archive, name="many")
    client.wait(job.id)
    started = time.monotonic()
    done = client.wait(client.create_job(kind="predict", model=MODEL, dataset_id=job.dataset_id).id)
    seconds = time.monotonic() - started
    assert done.started_at is not None
    assert done.finished_at is not None
    worked = (done.finished_at - done.started_at).total_seconds()
    embed = done.timings["embed"]["seconds"]
    return {
        "images": count,
        "embed images/s": count / embed,
        "job images/s": count / worked,
        "share": embed / worked,
        "as the client sees it": embed / seconds,
    }


def show(title: str, rows: list[Row]) -> None:
    from benchmarks.run import print_table

    print(f"\n## {title}\n")
    print_table(rows)
    sys.stdout.flush()


def run(options: argparse.Namespace) -> Row:
    images = photos(options.images, options.width, options.height)
    found: Row = {"bytes an image": statistics.mean(map(len, images))}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_service(folder) as (url, pid), TemiClient(url, timeout=600) as client:
            train(client, images, folder)
            service = Service(url, images)
            loaded = service.warm_up()
            found["loaded"] = loaded
            show("serving with", [loaded])
            ours, theirs = multiprocessing.get_context("spawn").Pipe()
            bare = multiprocessing.get_context("spawn").Process(
                target=bare_model.main, args=(theirs, folder / "data", MODEL)
            )
            bare.start()
            assert ours.recv() == "ready"
            rows = list(
                compare(service, ours, images, options.clients, options.rounds, options.seconds)
            )
            ours.send(None)
            bare.join()
            rows.append(middle(rows))
            show(f"{options.width} x {options.height} JPEG", rows)
            found["rounds"] = rows
            if options.overload_minutes:
                capacity = rows[-1][f"{options.clients} clients images/s"]
                found["overload"] = overload(service, pid, capacity, options.overload_minutes)
                show("twice the capacity", [found["overload"]])
            if options.predict_images:
                found["predict job"] = predict_job(client, folder, options.predict_images)
                show("predict as a job", [found["predict job"]])
    return found


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100, help="distinct photos")
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--overload-minutes", type=float, default=0.0)
    parser.add_argument("--predict-images", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse()
    found = run(options)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
