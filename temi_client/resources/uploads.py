"""Uploads: new datasets, images for existing ones, and resumable uploads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from temi_client import tus
from temi_client.downloads import Progress
from temi_client.models.datasets import Upload, UploadLimits
from temi_client.models.jobs import Job
from temi_client.resources.base import Resource, idempotency_header, path_segment, without_none
from temi_client.transport import Body
from temi_client.uploads import (
    MANIFEST_TYPES,
    default_name,
    file_body,
    is_image,
    media_type,
    multipart_body,
    prepare_images,
)

PathLike = str | Path
# `manifest`: a manifest.csv or manifest.jsonl at the root of the archive or folder.
LabelsFrom = Literal["none", "folder", "manifest"]

# Larger archives are sent as resumable uploads.
RESUMABLE_BYTES = 64 * 1024 * 1024


class UploadSource(TypedDict):
    type: Literal["upload"]
    upload_id: str


class FolderSource(TypedDict):
    """A folder of the server that TEMI_SOURCE_FOLDERS allows."""

    type: Literal["folder"]
    path: str


class ObjectsSource(TypedDict):
    """`s3://bucket/prefix`."""

    type: Literal["objects"]
    url: str


class UrlsSource(TypedDict):
    type: Literal["urls"]
    urls: list[str]


Source = UploadSource | FolderSource | ObjectsSource | UrlsSource


class JobOptions(TypedDict, total=False):
    webhook_url: str | None
    priority: int | None
    idempotency_key: str | None


class IngestOptions(JobOptions, total=False):
    labels_from: LabelsFrom


class UploadMethods(Resource):
    def upload_dataset(
        self,
        source: PathLike | Sequence[PathLike],
        *,
        name: str | None = None,
        resumable: bool | None = None,
        progress: Progress | None = None,
        **options: Unpack[IngestOptions],
    ) -> Job:
        """Uploads an archive, a folder or a list of images; returns the ingest job. By default,
        archives above 64 MiB are sent in resumable chunks if no `idempotency_key` is given."""
        paths = _as_paths(source)
        settings = {"name": name or default_name(paths), **options}
        return self._send_images("/v1/datasets", paths, settings, resumable, progress)

    def append_images(
        self,
        dataset_id: str,
        source: PathLike | Sequence[PathLike],
        *,
        resumable: bool | None = None,
        progress: Progress | None = None,
        **options: Unpack[IngestOptions],
    ) -> Job:
        """Adds the images of an archive, a folder or a list to a dataset."""
        paths = _as_paths(source)
        return self._send_images(_images(dataset_id), paths, options, resumable, progress)

    def create_dataset(self, source: Source, *, name: str, **options: Unpack[IngestOptions]) -> Job:
        """Creates a dataset from a source that the service reads: a finished upload, a folder of
        the server, a bucket or URLs."""
        return self._send_source("/v1/datasets", source, {"name": name, **options})

    def append_source(
        self, dataset_id: str, source: Source, **options: Unpack[IngestOptions]
    ) -> Job:
        """Adds images to a dataset, from the same sources as `create_dataset`."""
        return self._send_source(_images(dataset_id), source, options)

    def upload_manifest(
        self, path: PathLike, *, name: str | None = None, **options: Unpack[JobOptions]
    ) -> Job:
        """Creates a dataset from a CSV or JSON lines file that lists images and labels."""
        manifest = _manifest(path)
        settings = {"name": name or default_name(manifest), **options}
        return self._send_body("/v1/datasets", file_body(manifest), settings)

    def append_manifest(
        self, dataset_id: str, path: PathLike, **options: Unpack[JobOptions]
    ) -> Job:
        """Adds the images of a manifest to a dataset."""
        return self._send_body(_images(dataset_id), file_body(_manifest(path)), options)

    def upload_resumable(
        self,
        path: PathLike,
        *,
        upload: str | None = None,
        chunk_bytes: int = tus.CHUNK_BYTES,
        progress: Progress | None = None,
    ) -> Upload:
        """Sends a file in chunks, or continues `upload`, the id or URL of an earlier upload.
        Retries after broken connections; then raises `UploadInterrupted` with the upload's id."""
        file = Path(path)
        started = tus.read_upload(self._transport, upload) if upload else None
        return tus.send_file(
            self._transport,
            file,
            started or tus.create_upload(self._transport, file),
            chunk_bytes=chunk_bytes,
            progress=progress,
        )

    def upload_limits(self) -> UploadLimits:
        """Returns the maximum size and the tus extensions of resumable uploads."""
        return tus.read_limits(self._transport)

    def upload_state(self, upload: str) -> Upload:
        """Returns the offset and length of a resumable upload."""
        return tus.read_upload(self._transport, upload)

    def delete_upload(self, upload: str) -> None:
        tus.delete_upload(self._transport, upload)

    def _send_images(
        self,
        path: str,
        source: Path | list[Path],
        settings: Mapping[str, Any],
        resumable: bool | None,
        progress: Progress | None,
    ) -> Job:
        with prepare_images(source) as prepared:
            if not isinstance(prepared, Path):
                return self._send_body(path, multipart_body(prepared, progress), settings)
            if resumable is None:
                # A repeated call makes another upload, but a key needs the same body.
                has_key = settings.get("idempotency_key") is not None
                resumable = not has_key and prepared.stat().st_size > RESUMABLE_BYTES
            if not resumable:
                return self._send_body(path, file_body(prepared, progress), settings)
            upload = self.upload_resumable(prepared, progress=progress)
            return self._send_source(path, {"type": "upload", "upload_id": upload.id}, settings)

    def _send_body(self, path: str, body: Body, settings: Mapping[str, Any]) -> Job:
        params, headers = _split_key(settings)
        response = self._transport.send("POST", path, params=params, body=body, headers=headers)
        return Job.model_validate_json(response.content)

    def _send_source(self, path: str, source: Source, settings: Mapping[str, Any]) -> Job:
        fields, headers = _split_key(settings)
        return self._post(Job, path, {**fields, "source": source}, headers)


def _split_key(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the settings without the idempotency key, and the header with the key."""
    fields = without_none(settings)
    return fields, idempotency_header(fields.pop("idempotency_key", None))


def _images(dataset_id: str) -> str:
    return f"/v1/datasets/{path_segment(dataset_id)}/images"


def _manifest(path: PathLike) -> Path:
    manifest = Path(path)
    if media_type(manifest) not in MANIFEST_TYPES:
        raise ValueError(f"{manifest} is not a manifest: its name must end with .csv or .jsonl")
    return manifest


def _as_paths(source: PathLike | Sequence[PathLike]) -> Path | list[Path]:
    if isinstance(source, str | Path):
        path = Path(source)
        if not path.exists():
            raise FileNotFoundError(f"no such file or folder: {path}")
        return [path] if is_image(path) else path
    paths = [Path(path) for path in source]
    if not paths:
        raise ValueError("no images to upload")
    return paths
