"""The model registry: versions, aliases, and models that go from one service to another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temi_client.downloads import Progress, download_stream
from temi_client.models import AliasChange, Comparison, Model, ModelVersion
from temi_client.resources.base import Resource, given, idempotency, part
from temi_client.transport import Body
from temi_client.uploads import file_body

_IMPORT_SECONDS = 900.0  # gigabytes are checked before the answer comes


class RegistryMethods(Resource):
    def models(self) -> Iterator[Model]:
        return self._pages(Model, "/v1/models")

    def model(self, name: str) -> Model:
        return self._get(Model, _model(name))

    def delete_model(self, name: str) -> None:
        """All its versions with their files. What they made (clusterings) stays."""
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
        """Settings, metrics and, on a dataset that both have clustered, where images move."""
        return self._get(
            Comparison, f"{_model(name)}:compare", left=left, right=right, dataset_id=dataset_id
        )

    def set_alias(self, name: str, alias: str, version: int) -> Model:
        response = self._transport.send("PUT", _alias(name, alias), json={"version": version})
        return Model.model_validate_json(response.content)

    def delete_alias(self, name: str, alias: str) -> None:
        self._delete(_alias(name, alias))

    def rollback_alias(self, name: str, alias: str, *, idempotency_key: str | None = None) -> Model:
        """Point it at what it was before its last move; again, and it goes one further back."""
        path = f"{_alias(name, alias)}:rollback"
        return self._post(Model, path, headers=idempotency(idempotency_key))

    def alias_history(self, name: str, alias: str) -> Iterator[AliasChange]:
        """Every move, newest first."""
        return self._pages(AliasChange, f"{_alias(name, alias)}/history")

    def export_version(
        self, name: str, version: int, path: str | Path, *, progress: Progress | None = None
    ) -> Path:
        """Save a version as one file. A folder is given a file of the name `name-version.temi`."""
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
        """Register a file that `export_version` saved, under its own name or another one."""
        response = self._transport.send(
            "POST",
            "/v1/models:import",
            params=given({"name": name}),
            headers=idempotency(idempotency_key),
            body=_patient(file_body(Path(path), progress)),
        )
        return ModelVersion.model_validate_json(response.content)


def _patient(body: Body) -> Body:
    @contextmanager
    def open_body() -> Iterator[dict[str, Any]]:
        with body() as content:
            yield {**content, "timeout": _IMPORT_SECONDS}

    return open_body


def _model(name: str) -> str:
    return f"/v1/models/{part(name)}"


def _version(name: str, version: int) -> str:
    return f"{_model(name)}/versions/{part(version)}"


def _alias(name: str, alias: str) -> str:
    return f"{_model(name)}/aliases/{part(alias)}"
