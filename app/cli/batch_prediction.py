"""Predictions of many files: bounded batches, several at a time, in the order of the files."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from itertools import islice
from pathlib import Path

from temi_client import ApiError, Prediction, Predictions, TemiClient
from temi_client.models.base import ErrorInfo
from temi_client.models.registry import ModelRef
from temi_client.uploads import is_image

_BATCH_FILES = 16
_BATCH_BYTES = 32 * 1024 * 1024
_PARALLEL = 4
# The service refuses the request for a file in it, and not for the model or the key.
_REFUSED_FILES = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}


def list_images(paths: Sequence[Path]) -> list[Path]:
    """Returns files as given, and the images of folders, without hidden ones, by name."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = (one for one in sorted(path.rglob("*")) if is_image(one))
        found += [one for one in inside if not _is_hidden(one.relative_to(path))]
    return found


class BatchPredictor:
    """Predicts with one version of a model, also if its alias changes meanwhile."""

    def __init__(
        self,
        client: TemiClient,
        reference: str,
        top_k: int,
        neighbors: int = 0,
        false_alarm_rate: float | None = None,
        keep: bool = True,
    ) -> None:
        self._client = client
        self._top_k = top_k
        self._neighbors = neighbors
        self._false_alarm_rate = false_alarm_rate
        self._keep = keep
        name, _, version = reference.partition("/versions/")
        self._name = name
        self._version = int(version) if version.isdecimal() else None
        self.model: ModelRef | None = None  # known after the first prediction

    def predict(self, files: Iterable[Path]) -> Iterator[Prediction]:
        """Yields one prediction, or one error, per file; its `image` is the path as given."""
        batches = _batches(files)
        for batch in batches:  # one after the other until the version is known
            yield from self._predict_batch(batch)
            if self.model is not None:
                break
        waiting: deque[Future[list[Prediction]]] = deque()
        with ThreadPoolExecutor(_PARALLEL, "predict") as pool:
            try:
                while True:
                    for batch in islice(batches, 2 * _PARALLEL - len(waiting)):
                        waiting.append(pool.submit(self._predict_batch, batch))
                    if not waiting:
                        return
                    yield from waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def predict_stored(self, image_ids: Sequence[str]) -> Iterator[Prediction]:
        """Yields the predictions of images of datasets."""
        for start in range(0, len(image_ids), _BATCH_FILES):
            found = self._client.predict_images(
                self._name,
                image_ids[start : start + _BATCH_FILES],
                version=self._version,
                top_k=self._top_k,
                neighbors=self._neighbors,
                false_alarm_rate=self._false_alarm_rate,
            )
            self._pin(found)
            yield from found.data

    def _pin(self, found: Predictions) -> None:
        if self.model is None:
            self.model, self._name = found.model, found.model.name
            self._version = found.model.version

    def _predict_batch(self, batch: list[Path]) -> list[Prediction]:
        try:
            found = self._client.predict(
                self._name,
                batch,
                version=self._version,
                top_k=self._top_k,
                neighbors=self._neighbors,
                false_alarm_rate=self._false_alarm_rate,
                keep=self._keep,
            )
        except ApiError as error:
            if error.status not in _REFUSED_FILES:
                raise
            failure = ErrorInfo(code=error.code, detail=error.detail)
        except OSError as error:
            failure = ErrorInfo(code="file_unreadable", detail=str(error))
        else:
            self._pin(found)
            return [
                one.model_copy(update={"image": str(path)})
                for path, one in zip(batch, found.data, strict=True)
            ]
        if len(batch) == 1:
            return [Prediction(image=str(batch[0]), error=failure)]
        return [one for path in batch for one in self._predict_batch([path])]


def _batches(files: Iterable[Path]) -> Iterator[list[Path]]:
    batch: list[Path] = []
    size = 0
    for path in files:
        added = _size(path)
        if batch and (len(batch) == _BATCH_FILES or size + added > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += added
    if batch:
        yield batch


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # reading it reports the error


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
