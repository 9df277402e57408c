"""Labels for new images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temi_client.models import LoadedModel, LoadedModels, Prediction, Predictions
from temi_client.resources.base import Resource, part
from temi_client.uploads import multipart_body

_PREDICT_BATCH = 64


class PredictionMethods(Resource):
    def predict(
        self,
        name: str,
        paths: Sequence[str | Path],
        *,
        top_k: int = 3,
        version: int | None = None,
        probabilities: bool = False,
    ) -> Predictions:
        """Labels for files, by `name`, `name@alias` or a fixed version."""
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
            body = multipart_body(batch)
            answer = self._predict(name, version, top_k, probabilities, body=body)
            found += answer.data
        assert answer is not None
        return Predictions(model=answer.model, data=found)

    def predict_images(
        self,
        name: str,
        image_ids: Sequence[str],
        *,
        top_k: int = 3,
        version: int | None = None,
        probabilities: bool = False,
    ) -> Predictions:
        """Labels for images of your datasets, by their ids."""
        body = {"image_ids": list(image_ids)}
        return self._predict(name, version, top_k, probabilities, json=body)

    def predict_embeddings(
        self,
        name: str,
        embeddings: Sequence[Sequence[float]],
        *,
        top_k: int = 3,
        version: int | None = None,
        probabilities: bool = False,
    ) -> Predictions:
        """Labels for features that you computed with the model's own backbone."""
        body = {"embeddings": [[float(value) for value in row] for row in embeddings]}
        return self._predict(name, version, top_k, probabilities, json=body)

    def loaded_models(self) -> list[LoadedModel]:
        """Models in the memory of the server, and how fast each way to compute them was."""
        return self._get(LoadedModels, "/v1/serving").data

    def _predict(
        self, name: str, version: int | None, top_k: int, probabilities: bool, **content: Any
    ) -> Predictions:
        fixed = "" if version is None else f"/versions/{version}"
        response = self._transport.send(
            "POST",
            f"/v1/models/{part(name)}{fixed}:predict",
            params={"top_k": top_k, **({"probabilities": True} if probabilities else {})},
            **content,
        )
        return Predictions.model_validate_json(response.content)
