"""From the body of an inference request to what is to be labeled. Nothing in it is believed."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from app.api import schemas
from app.api.http.validation import check_json_values, parse_json
from app.api.routes.oip import binary
from app.core.platform.errors import InvalidRequest
from app.core.platform.settings import Settings
from app.core.serving.references import Target

OUTPUTS: tuple[schemas.OutputName, ...] = get_args(schemas.OutputName)
_OTHER_VALUES = 10_000  # that a request may have beside its numbers
_JSON_NUMBER = 22  # bytes, at most


@dataclass(frozen=True, kw_only=True)
class Inference:
    """A request that holds what it says; it has either images or features."""

    id: str | None
    images: Sequence[bytes] = ()
    features: npt.NDArray[np.float32] | None = None
    outputs: Mapping[schemas.OutputName, bool]  # whether it is wanted as binary
    seconds: float | None

    @property
    def count(self) -> int:
        return len(self.images) if self.features is None else len(self.features)


def read_request(body: bytes, header: str | None, target: Target, settings: Settings) -> Inference:
    """For a thread: a million numbers take their time."""
    text, tail = binary.split(body, header)
    request = _parse(text, settings.max_predict_features * target.feature_dim)
    (tensor,) = request.inputs
    parameters = request.parameters or schemas.InferParameters()
    raw = _binary_of(tensor, tail)
    inference = Inference(
        id=request.id,
        images=_images(tensor, raw, settings.max_predict_files) if _is_images(tensor) else (),
        features=None if _is_images(tensor) else _features(tensor, raw, target, settings),
        outputs=_outputs(request.outputs, parameters.binary_data_output),
        seconds=parameters.timeout / 1e6 if parameters.timeout else None,
    )
    _check_answer(inference, len(target.labels), settings.max_predict_bytes)
    return inference


def _parse(text: bytes, max_numbers: int) -> schemas.InferRequest:
    check_json_values(text, max_numbers + _OTHER_VALUES)
    return parse_json(schemas.InferRequest, text)


def _is_images(tensor: schemas.InferInput) -> bool:
    return tensor.name == "images"


def _binary_of(tensor: schemas.InferInput, tail: memoryview) -> memoryview | None:
    """What follows the JSON, if the tensor says that it is there."""
    size = tensor.parameters.binary_data_size if tensor.parameters else None
    if (size is None) == (tensor.data is None):
        raise InvalidRequest.field(f"inputs.{tensor.name}", "needs either data or binary_data_size")
    if (size or 0) != len(tail):
        raise InvalidRequest.field(
            f"inputs.{tensor.name}",
            f"{size or 0:,} bytes were announced after the JSON and {len(tail):,} are there; "
            f"the header {binary.HEADER} says where they begin",
        )
    return tail if size is not None else None


def _images(tensor: schemas.InferInput, raw: memoryview | None, most: int) -> list[bytes]:
    if tensor.datatype != "BYTES" or len(tensor.shape) != 1:
        raise InvalidRequest.field("inputs.images", "takes datatype BYTES and shape [n]")
    (count,) = tensor.shape
    _check_count("images", count, most)
    if raw is not None:
        return list(binary.read_elements(raw, count))
    data = tensor.data or []
    if len(data) != count:
        raise InvalidRequest.field("inputs.images", f"has {len(data)} elements, not {count}")
    return [_from_base64(number, text) for number, text in enumerate(data)]


def _from_base64(number: int, text: Any) -> bytes:
    try:
        if isinstance(text, str):
            return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise InvalidRequest.field(f"inputs.images.{number}", "must be a file in base64")


def _features(
    tensor: schemas.InferInput, raw: memoryview | None, target: Target, settings: Settings
) -> npt.NDArray[np.float32]:
    dim = target.feature_dim
    if tensor.datatype != "FP32" or len(tensor.shape) != 2 or tensor.shape[1] != dim:
        raise InvalidRequest.field("inputs.embeddings", f"takes datatype FP32 and shape [n, {dim}]")
    count = tensor.shape[0]
    _check_count("embeddings", count, settings.max_predict_features)
    if raw is not None:
        features = binary.read_floats(raw, tensor.shape)
    else:
        features = _from_numbers(tensor.data or [], count, dim)
    if not np.isfinite(features).all():
        raise InvalidRequest.field("inputs.embeddings", "has a number that is no finite FP32")
    return features


def _from_numbers(data: list[Any], count: int, dim: int) -> npt.NDArray[np.float32]:
    """Row by row, or all rows in one list."""
    if data and isinstance(data[0], list):
        if not all(isinstance(row, list) and len(row) == dim for row in data):
            raise InvalidRequest.field("inputs.embeddings", f"every row must have {dim} numbers")
        data = list(chain.from_iterable(data))
    if len(data) != count * dim:
        raise InvalidRequest.field(
            "inputs.embeddings", f"has {len(data):,} numbers; its shape needs {count * dim:,}"
        )
    if not set(map(type, data)) <= {int, float}:
        raise InvalidRequest.field("inputs.embeddings", "takes numbers only")
    try:
        with np.errstate(over="ignore"):  # becomes infinite, which is looked for later
            return np.array(data, dtype=np.float32).reshape(count, dim)
    except OverflowError:
        raise InvalidRequest.field("inputs.embeddings", "has a number that is too large") from None


def _check_count(name: str, count: int, most: int) -> None:
    if not 1 <= count <= most:
        raise InvalidRequest.field(f"inputs.{name}", f"takes 1 to {most} in one request")


def _outputs(
    wanted: Sequence[schemas.InferOutput] | None, as_binary: bool
) -> dict[schemas.OutputName, bool]:
    if not wanted:
        return dict.fromkeys(OUTPUTS, as_binary)
    return {
        output.name: as_binary
        if output.parameters is None or output.parameters.binary_data is None
        else output.parameters.binary_data
        for output in wanted
    }


def _check_answer(inference: Inference, clusters: int, most_bytes: int) -> None:
    """Every cluster of every image is a lot, and all of it is in memory at once."""
    as_binary = inference.outputs.get("probabilities")
    number = 4 if as_binary else _JSON_NUMBER
    if as_binary is not None and inference.count * clusters * number > most_bytes:
        raise InvalidRequest.field(
            "outputs",
            f"`probabilities` of {inference.count:,} x {clusters:,} would be too long an answer; "
            "leave it out, ask for binary data or send less at once",
        )
