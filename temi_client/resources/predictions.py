"""Predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temi_client.models.predictions import LoadedModel, LoadedModels, Prediction, Predictions
from temi_client.resources.base import Resource, path_segment
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
        neighbors: int = 0,
        false_alarm_rate: float | None = None,
        keep: bool = True,
    ) -> Predictions:
        """Labels files with a model: `name`, `name@alias`, or `name` and `version`. `neighbors`
        is the number of most similar images of the training to list. With a `false_alarm_rate`,
        images unlike those of the training get no cluster and the label `none of these`; unless
        `keep` is False, the service may keep them for `proposals`, if it is set to."""
        files = [Path(path) for path in paths]
        if not files:
            raise ValueError("no images to predict")
        found: list[Prediction] = []
        response: Predictions | None = None
        for start in range(0, len(files), _PREDICT_BATCH):
            if response is not None:
                # If the alias changes meanwhile, all batches still use the first version.
                name, version = response.model.name, response.model.version
            batch = files[start : start + _PREDICT_BATCH]
            body = multipart_body(batch)
            options = _options(top_k, probabilities, neighbors, false_alarm_rate)
            options |= {} if keep else {"keep": False}
            response = self._predict(name, version, options, body=body)
            found += response.data
        assert response is not None
        return Predictions(model=response.model, data=found)

    def predict_images(
        self,
        name: str,
        image_ids: Sequence[str],
        *,
        top_k: int = 3,
        version: int | None = None,
        probabilities: bool = False,
        neighbors: int = 0,
        false_alarm_rate: float | None = None,
    ) -> Predictions:
        """Labels images of your datasets, by id."""
        body = {"image_ids": list(image_ids)}
        options = _options(top_k, probabilities, neighbors, false_alarm_rate)
        return self._predict(name, version, options, json=body)

    def predict_embeddings(
        self,
        name: str,
        embeddings: Sequence[Sequence[float]],
        *,
        top_k: int = 3,
        version: int | None = None,
        probabilities: bool = False,
        neighbors: int = 0,
        false_alarm_rate: float | None = None,
    ) -> Predictions:
        """Labels features that were computed with the model's backbone."""
        body = {"embeddings": [[float(value) for value in row] for row in embeddings]}
        options = _options(top_k, probabilities, neighbors, false_alarm_rate)
        return self._predict(name, version, options, json=body)

    def loaded_models(self) -> list[LoadedModel]:
        """Returns the models that are loaded for predictions, with their backend and precision."""
        return self._get(LoadedModels, "/v1/serving").data

    def _predict(
        self, name: str, version: int | None, options: dict[str, Any], **content: Any
    ) -> Predictions:
        fixed = "" if version is None else f"/versions/{version}"
        response = self._transport.send(
            "POST",
            f"/v1/models/{path_segment(name)}{fixed}:predict",
            params=options,
            **content,
        )
        return Predictions.model_validate_json(response.content)


def _options(
    top_k: int, probabilities: bool, neighbors: int, false_alarm_rate: float | None
) -> dict[str, Any]:
    return {
        "top_k": top_k,
        **({"probabilities": True} if probabilities else {}),
        **({"neighbors": neighbors} if neighbors else {}),
        **({} if false_alarm_rate is None else {"false_alarm_rate": false_alarm_rate}),
    }
