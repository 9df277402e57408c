"""Parses and validates the body of an inference request."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, get_args

from app.api import schemas
from app.api.http.validation import check_json_values, parse_json
from app.api.inference import (
    OTHER_JSON_VALUES,
    Features,
    PredictInputs,
    check_count,
    check_novelty,
    check_rows,
    to_features,
)
from app.api.routes.oip import binary
from app.core.platform.errors import InvalidRequest
from app.core.platform.settings import Settings
from app.core.serving.resolver import ResolvedModel

OUTPUTS: tuple[schemas.OutputName, ...] = get_args(schemas.OutputName)
_JSON_NUMBER = 22  # bytes at most


@dataclass(frozen=True, kw_only=True)
class Inference:
    """A validated request."""

    id: str | None
    inputs: PredictInputs
    outputs: Mapping[schemas.OutputName, bool]  # True: as binary data
    seconds: float | None
    false_alarm_rate: float | None = None


def read_request(
    body: bytes, header: str | None, model: ResolvedModel, settings: Settings
) -> Inference:
    """Slow for a million numbers: call it in a thread."""
    text, tail = binary.split(body, header)
    request = _parse(text, settings.max_predict_features * model.feature_dim)
    (tensor,) = request.inputs
    parameters = request.parameters or schemas.InferParameters()
    raw = _binary_of(tensor, tail)
    inference = Inference(
        id=request.id,
        inputs=_inputs(tensor, raw, model, settings),
        outputs=_outputs(request.outputs, parameters.binary_data_output),
        seconds=parameters.timeout / 1e6 if parameters.timeout else None,
        false_alarm_rate=parameters.false_alarm_rate,
    )
    check_novelty(model, inference.false_alarm_rate)
    _check_response_size(inference, len(model.clusters), settings.max_predict_bytes)
    return inference


def _parse(text: bytes, max_numbers: int) -> schemas.InferRequest:
    check_json_values(text, max_numbers + OTHER_JSON_VALUES)
    return parse_json(schemas.InferRequest, text)


def _inputs(
    tensor: schemas.InferInput, raw: memoryview | None, model: ResolvedModel, settings: Settings
) -> PredictInputs:
    if tensor.name == "images":
        return PredictInputs(images=_images(tensor, raw, settings.max_predict_files))
    return PredictInputs(features=_features(tensor, raw, model, settings))


def _binary_of(tensor: schemas.InferInput, tail: memoryview) -> memoryview | None:
    """The bytes after the JSON, if the tensor refers to them."""
    size = tensor.parameters.binary_data_size if tensor.parameters else None
    if (size is None) == (tensor.data is None):
        raise InvalidRequest.field(f"inputs.{tensor.name}", "needs either data or binary_data_size")
    if (size or 0) != len(tail):
        raise InvalidRequest.field(
            f"inputs.{tensor.name}",
            f"has a binary_data_size of {size or 0:,}, but {len(tail):,} bytes follow the JSON; "
            f"the header {binary.HEADER} must be the length of the JSON",
        )
    return tail if size is not None else None


def _images(tensor: schemas.InferInput, raw: memoryview | None, limit: int) -> list[bytes]:
    if tensor.datatype != "BYTES" or len(tensor.shape) != 1:
        raise InvalidRequest.field("inputs.images", "must have datatype BYTES and shape [n]")
    (count,) = tensor.shape
    check_count("inputs.images", count, limit)
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
    raise InvalidRequest.field(f"inputs.images.{number}", "must be an image file in base64")


def _features(
    tensor: schemas.InferInput, raw: memoryview | None, model: ResolvedModel, settings: Settings
) -> Features:
    dim = model.feature_dim
    if tensor.datatype != "FP32" or len(tensor.shape) != 2 or tensor.shape[1] != dim:
        raise InvalidRequest.field(
            "inputs.embeddings", f"must have datatype FP32 and shape [n, {dim}]"
        )
    count = tensor.shape[0]
    check_count("inputs.embeddings", count, settings.max_predict_features)
    if raw is not None:
        numbers: Any = binary.read_floats(raw, tensor.shape)
    else:
        numbers = _flatten(tensor.data or [], count, dim)
    return to_features("inputs.embeddings", numbers, count, dim)


def _flatten(data: list[Any], count: int, dim: int) -> list[Any]:
    """The numbers of a tensor that is given as rows or as one list."""
    if data and isinstance(data[0], list):
        check_rows("inputs.embeddings", data, dim)
        data = list(chain.from_iterable(data))
    if len(data) != count * dim:
        raise InvalidRequest.field(
            "inputs.embeddings", f"has {len(data):,} numbers; its shape needs {count * dim:,}"
        )
    if not set(map(type, data)) <= {int, float}:
        raise InvalidRequest.field("inputs.embeddings", "must contain numbers only")
    return data


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


def _check_response_size(inference: Inference, clusters: int, limit: int) -> None:
    """The probabilities of all clusters for all images are in memory at once."""
    as_binary = inference.outputs.get("probabilities")
    if as_binary is None:
        return
    count = len(inference.inputs)
    if count * clusters * (4 if as_binary else _JSON_NUMBER) > limit:
        raise InvalidRequest.field(
            "outputs",
            f"`probabilities` of {count:,} x {clusters:,} would be too long; leave it out, "
            "request binary data or send fewer inputs",
        )
