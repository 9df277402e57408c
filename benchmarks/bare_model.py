"""The throughput of a model without the service: image bytes in memory to probabilities.

`benchmarks.serving` runs it in a separate process.
"""

import threading
import time
from collections.abc import Sequence
from itertools import cycle, islice
from multiprocessing.connection import Connection
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from app.core.datasets.images import decode_image
from app.core.models.files import ModelFiles, load_model
from app.core.models.versions import get_model, get_version
from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from temi.backbones.embedding import default_batch


class BareModel:
    """The model files of the service, computed in the same way."""

    def __init__(self, data_dir: Path, name: str) -> None:
        settings = Settings(_env_file=None, data_dir=data_dir)
        runtime = Runtime(settings)
        with runtime.db.read() as session:
            row = get_version(session, get_model(session, "default", name), 1)
        files = ModelFiles.of(row.folder, row.files, row.manifest)
        self._backbone, self._head, _ = load_model(files, settings)
        self._cores = settings.threads
        threadpool_limits(1, "blas")  # as in the prediction process

    def predict(self, images: Sequence[bytes], threads: int) -> None:
        preprocessing = self._backbone.preprocessing
        pixels = preprocessing.new_batch(len(images))
        for row, data in enumerate(images):
            picture = decode_image(data, at_least=preprocessing.decode_side).image
            preprocessing.fill(pixels[row], picture)
        self._head.predict_proba(self._backbone.embed(pixels, threads))

    def rate(self, images: Sequence[bytes], seconds: float) -> float:
        """Return images/s with one thread per core, each with its own batches."""
        size = default_batch(self._backbone.device_type)
        until = time.perf_counter() + seconds
        done = [0] * self._cores

        def work(lane: int) -> None:
            source = cycle(images)
            while time.perf_counter() < until:
                self.predict(list(islice(source, size)), 1)
                done[lane] += size

        lanes = [threading.Thread(target=work, args=(lane,)) for lane in range(self._cores)]
        started = time.perf_counter()
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        return sum(done) / (time.perf_counter() - started)

    def milliseconds(self, data: bytes) -> float:
        """Return the time of one image with all cores."""
        started = time.perf_counter()
        self.predict([data], self._cores)
        return (time.perf_counter() - started) * 1e3


def main(connection: Connection, data_dir: Path, name: str) -> None:
    model = BareModel(data_dir, name)
    connection.send("ready")
    while (order := connection.recv()) is not None:
        what, *arguments = order
        connection.send(getattr(model, what)(*arguments))
