"""Exports of clusterings to files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from temi_client.downloads import Progress, download_resumable
from temi_client.models.clusterings import Export
from temi_client.resources.base import Resource, path_segment


class ExportMethods(Resource):
    def exports(self, *, clustering_id: str | None = None) -> Iterator[Export]:
        return self._pages(Export, "/v1/exports", clustering_id=clustering_id)

    def get_export(self, export_id: str) -> Export:
        return self._get(Export, _path(export_id))

    def download_export(
        self, export_id: str, path: str | Path, *, progress: Progress | None = None
    ) -> Path:
        """Saves the file and checks its hash; resumes an interrupted download. In a folder, the
        file has the export's name."""
        export = self.get_export(export_id)
        target = Path(path)
        if target.is_dir():
            target = target / Path(export.filename).name
        return download_resumable(
            self._transport,
            f"{_path(export_id)}/content",
            target,
            size=export.bytes,
            sha256=export.sha256,
            progress=progress,
        )

    def delete_export(self, export_id: str) -> None:
        self._delete(_path(export_id))


def _path(export_id: str) -> str:
    return f"/v1/exports/{path_segment(export_id)}"
