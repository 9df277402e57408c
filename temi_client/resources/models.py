"""Labels for new images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from temi_client.models import Prediction, Predictions
from temi_client.resources.base import Resource, part
from temi_client.uploads import multipart_body

_PREDICT_BATCH = 64


class ModelMethods(Resource):
    def predict(
        self,
        name: str,
        paths: Sequence[str | Path],
        *,
        top_k: int = 3,
        version: int | None = None,
        probabilities: bool = False,
    ) -> Predictions:
        """Labels for images, by `name`, `name@alias` or a fixed version."""
        files = [Path(path) for path in paths]
        if not files:
            raise ValueError("no images to predict")
        found: list[Prediction] = []
        answer: Predictions | None = None
        for start in range(0, len(files), _PREDICT_BATCH):
            if answer is not None:
                # An alias that moves meanwhile must not mix two versions in one answer.
                name, version = answer.model.name, answer.model.version
            batch = files[start : start + _PREDICT_BATCH]
            answer = self._predict(name, version, batch, top_k, probabilities)
            found += answer.data
        assert answer is not None
        return Predictions(model=answer.model, data=found)

    def _predict(
        self,
        name: str,
        version: int | None,
        files: Sequence[Path],
        top_k: int,
        probabilities: bool,
    ) -> Predictions:
        fixed = "" if version is None else f"/versions/{version}"
        response = self._transport.send(
            "POST",
            f"/v1/models/{part(name)}{fixed}:predict",
            params={"top_k": top_k, **({"probabilities": True} if probabilities else {})},
            body=multipart_body(files),
        )
        return Predictions.model_validate_json(response.content)
