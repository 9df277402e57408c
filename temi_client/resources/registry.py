"""The model registry: versions, aliases, export and import."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from temi_client.downloads import Progress, download_stream
from temi_client.models.registry import (
    AliasChange,
    Calibration,
    Comparison,
    CurrentCalibration,
    Drift,
    Model,
    ModelVersion,
)
from temi_client.resources.base import Resource, idempotency_header, path_segment, without_none
from temi_client.transport import Body
from temi_client.uploads import file_body

VersionPlotName = Literal["reliability", "drift"]
_IMPORT_TIMEOUT_SECONDS = 900.0  # the service checks the whole file before it responds


class RegistryMethods(Resource):
    def models(self) -> Iterator[Model]:
        return self._pages(Model, "/v1/models")

    def model(self, name: str) -> Model:
        return self._get(Model, _model(name))

    def delete_model(self, name: str) -> None:
        """Deletes all versions with their files; clusterings stay."""
        self._delete(_model(name))

    def model_versions(self, name: str) -> Iterator[ModelVersion]:
        return self._pages(ModelVersion, f"{_model(name)}/versions")

    def model_version(self, name: str, version: int) -> ModelVersion:
        return self._get(ModelVersion, _version(name, version))

    def delete_version(self, name: str, version: int) -> None:
        self._delete(_version(name, version))

    def compare_versions(
        self, name: str, left: int, right: int, *, dataset_id: str | None = None
    ) -> Comparison:
        """Compares settings and metrics, and the assignments of a dataset that both clustered."""
        return self._get(
            Comparison, f"{_model(name)}:compare", left=left, right=right, dataset_id=dataset_id
        )

    def set_alias(self, name: str, alias: str, version: int) -> Model:
        response = self._transport.send("PUT", _alias(name, alias), json={"version": version})
        return Model.model_validate_json(response.content)

    def delete_alias(self, name: str, alias: str) -> None:
        self._delete(_alias(name, alias))

    def rollback_alias(self, name: str, alias: str, *, idempotency_key: str | None = None) -> Model:
        """Sets an alias back to its previous version; each call goes one change further back."""
        path = f"{_alias(name, alias)}:rollback"
        return self._post(Model, path, headers=idempotency_header(idempotency_key))

    def alias_history(self, name: str, alias: str) -> Iterator[AliasChange]:
        """Lists the changes of an alias, newest first."""
        return self._pages(AliasChange, f"{_alias(name, alias)}/history")

    def calibration(self, name: str, version: int) -> CurrentCalibration:
        """Returns the calibration that predictions use, and how reliable it is on reviews."""
        return self._get(CurrentCalibration, f"{_version(name, version)}/calibration")

    def calibrate(self, name: str, version: int) -> Calibration:
        """Fits the probabilities of a version to the reviews of its clusterings."""
        return self._post(Calibration, f"{_version(name, version)}/calibrations")

    def calibrations(self, name: str, version: int) -> Iterator[Calibration]:
        """Lists the calibrations that were fitted to reviews, newest first."""
        return self._pages(Calibration, f"{_version(name, version)}/calibrations")

    def drift(self, name: str, version: int, *, days: int = 30) -> Drift:
        """Returns whether the images of the last days are like those of the training."""
        return self._get(Drift, f"{_version(name, version)}/drift", days=days)

    def version_plot(
        self,
        name: str,
        version: int,
        plot: VersionPlotName,
        *,
        format: Literal["png", "svg"] = "png",
    ) -> bytes:
        """Returns a plot of a version; `reliability` needs reviews."""
        path = f"{_version(name, version)}/plots/{path_segment(plot)}"
        return self._transport.send("GET", path, params={"format": format}).content

    def export_version(
        self, name: str, version: int, path: str | Path, *, progress: Progress | None = None
    ) -> Path:
        """Saves a version as one file; in a folder, it is called `name-version.temi`."""
        target = Path(path)
        if target.is_dir():
            target = target / f"{name}-{version}.temi"
        address = f"{_version(name, version)}/file"
        return download_stream(self._transport, address, target, progress=progress)

    def import_version(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> ModelVersion:
        """Registers a version from a file of `export_version`, under its own name or `name`."""
        response = self._transport.send(
            "POST",
            "/v1/models:import",
            params=without_none({"name": name}),
            headers=idempotency_header(idempotency_key),
            body=_with_import_timeout(file_body(Path(path), progress)),
        )
        return ModelVersion.model_validate_json(response.content)


def _with_import_timeout(body: Body) -> Body:
    @contextmanager
    def open_body() -> Iterator[dict[str, Any]]:
        with body() as content:
            yield {**content, "timeout": _IMPORT_TIMEOUT_SECONDS}

    return open_body


def _model(name: str) -> str:
    return f"/v1/models/{path_segment(name)}"


def _version(name: str, version: int) -> str:
    return f"{_model(name)}/versions/{path_segment(version)}"


def _alias(name: str, alias: str) -> str:
    return f"{_model(name)}/aliases/{path_segment(alias)}"
