"""Converts outcomes to the tensors of a response."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from fastapi import Response

from app.api import schemas
from app.api.routes.oip import binary
from app.api.routes.oip.requests import Inference
from app.core.platform.errors import ImageRejected, InvalidRequest
from app.core.serving import Outcome
from app.core.serving.resolver import ResolvedModel

Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float32]


@dataclass(frozen=True)
class _Tensor:
    datatype: schemas.Datatype
    values: Numbers | Sequence[str]

    @property
    def shape(self) -> list[int]:
        if isinstance(self.values, np.ndarray):
            return list(self.values.shape)
        return [len(self.values)]

    def as_bytes(self) -> bytes:
        if isinstance(self.values, np.ndarray):
            return self.values.astype(self.values.dtype.newbyteorder("<")).tobytes()
        return binary.write_elements(self.values)

    def as_list(self) -> list[int] | list[float] | list[str]:
        if isinstance(self.values, np.ndarray):
            return self.values.ravel().tolist()
        return list(self.values)


def to_response(
    inference: Inference, model: ResolvedModel, outcomes: Sequence[Outcome]
) -> Response:
    """Slow for large responses: call it in a thread."""
    tensors = _tensors(outcomes, model)
    outputs: list[schemas.InferResponseOutput] = []
    tail: list[bytes] = []
    for name, as_binary in inference.outputs.items():
        tensor = tensors[name]
        output = schemas.InferResponseOutput(
            name=name, datatype=tensor.datatype, shape=tensor.shape
        )
        if as_binary:
            tail.append(tensor.as_bytes())
            output.parameters = schemas.InferResponseParameters(binary_data_size=len(tail[-1]))
        else:
            output.data = tensor.as_list()
        outputs.append(output)
    answer = schemas.InferResponse(
        model_name=model.name,
        model_version=str(model.version),
        id=inference.id,
        outputs=outputs,
    )
    text = answer.model_dump_json(exclude_none=True).encode()
    if not any(inference.outputs.values()):
        return Response(text, media_type="application/json")
    headers = {binary.HEADER: str(len(text))}
    return Response(b"".join((text, *tail)), headers=headers, media_type="application/octet-stream")


def _tensors(
    outcomes: Sequence[Outcome], model: ResolvedModel
) -> dict[schemas.OutputName, _Tensor]:
    """The protocol has no errors of single images: they get cluster -1 and a text in `error`."""
    clusters = model.clusters
    merged = np.zeros((len(outcomes), len(clusters)), np.float32)  # (n, C)
    errors = [""] * len(outcomes)
    for row, outcome in enumerate(outcomes):
        if isinstance(outcome, ImageRejected):
            errors[row] = f"{outcome.code}: {outcome.detail}"
        else:
            merged[row] = clusters.merge(outcome)
    if all(errors):
        raise InvalidRequest(f"No image can be read; the first error is {errors[0]}")
    likeliest = merged.argmax(axis=1)
    read = np.array([not error for error in errors])
    probabilities = model.calibration.apply_to_all(merged) * read[:, None]
    chosen = np.where(read, np.take(clusters.cluster_ids, likeliest), -1).astype(np.int64)
    names = [clusters.names[i] if known else "" for i, known in zip(likeliest, read, strict=True)]
    return {
        "cluster_id": _Tensor("INT64", chosen),
        "label": _Tensor("BYTES", names),
        "probability": _Tensor("FP32", probabilities.max(axis=1)),
        "probabilities": _Tensor("FP32", probabilities),
        "error": _Tensor("BYTES", errors),
        "raw_probability": _Tensor("FP32", merged.max(axis=1)),
    }
