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
from app.core.serving.abstention import NONE_OF_THESE, is_novel
from app.core.serving.messages import Outcome
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
    tensors = _tensors(outcomes, model, inference.false_alarm_rate)
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
    outcomes: Sequence[Outcome], model: ResolvedModel, false_alarm_rate: float | None
) -> dict[schemas.OutputName, _Tensor]:
    """The protocol has no errors of single images: they get cluster -1 and a text in `error`.
    Novel images get cluster -1, too. A novelty of -1 means that it is not known."""
    clusters = model.clusters
    merged = np.zeros((len(outcomes), len(clusters)), np.float32)  # (n, C)
    novelty = np.full(len(outcomes), -1, np.float32)
    known = np.zeros(len(outcomes), np.bool_)
    errors = [""] * len(outcomes)
    for row, outcome in enumerate(outcomes):
        if isinstance(outcome, ImageRejected):
            errors[row] = f"{outcome.code}: {outcome.detail}"
        else:
            merged[row] = clusters.merge(outcome.probabilities)
            novelty[row] = -1 if outcome.novelty is None else outcome.novelty
            known[row] = not is_novel(outcome.novelty, false_alarm_rate)
    if all(errors):
        raise InvalidRequest(f"No image can be read; the first error is {errors[0]}")
    likeliest = merged.argmax(axis=1)
    read = np.array([not error for error in errors])
    probabilities = model.calibration.apply_to_all(merged) * read[:, None]
    chosen = np.where(known, np.take(clusters.cluster_ids, likeliest), -1).astype(np.int64)
    names = np.where(known, np.take(clusters.names, likeliest), NONE_OF_THESE)
    return {
        "cluster_id": _Tensor("INT64", chosen),
        "label": _Tensor("BYTES", np.where(read, names, "").tolist()),
        "probability": _Tensor("FP32", probabilities.max(axis=1)),
        "probabilities": _Tensor("FP32", probabilities),
        "error": _Tensor("BYTES", errors),
        "raw_probability": _Tensor("FP32", merged.max(axis=1)),
        "novelty": _Tensor("FP32", novelty),
    }
