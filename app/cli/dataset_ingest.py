"""`temi datasets create` and `append`: local images, or images that the service fetches."""

from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.connection import connect_for_transfer
from app.cli.options import AsJson, DatasetId, LabelsOption, Priority, Wait, WebhookUrl
from app.cli.progress import report_job, transfer_progress
from temi_client import Job, LabelsFrom, Source, TemiClient

app = typer.Typer()

Files = Annotated[
    list[Path] | None,
    typer.Argument(exists=True, metavar="FILES", help="An archive, a folder, or images."),
]
Resumable = Annotated[
    bool | None,
    typer.Option(
        "--resumable/--no-resumable",
        help="Send the archive in resumable chunks; default: if larger than 64 MiB.",
    ),
]
Resume = Annotated[str | None, typer.Option(metavar="UPLOAD", help="Resume an interrupted upload.")]
ServerFolder = Annotated[str | None, typer.Option(help="Folder on the server.")]
S3 = Annotated[
    str | None, typer.Option("--s3", metavar="s3://BUCKET/PREFIX", help="Prefix in a bucket.")
]
UrlsFile = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="Text file with one URL per line."),
]
Manifest = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="CSV or JSON Lines file that lists the images."),
]


class _ImageSource:
    """The one source of images that the command line names."""

    def __init__(
        self,
        files: list[Path] | None,
        resumable: bool | None,
        resume: str | None,
        folder: str | None,
        s3: str | None,
        urls_file: Path | None,
        manifest: Path | None,
    ) -> None:
        given = [value for value in (files, folder, s3, urls_file, manifest) if value]
        if len(given) != 1:
            raise typer.BadParameter(
                "Pass exactly one of FILES, --server-folder, --s3, --urls-file and --manifest."
            )
        if (resume or resumable) and not (files and len(files) == 1 and files[0].is_file()):
            raise typer.BadParameter("Only a single archive can be uploaded in resumable chunks.")
        self.files = files[0] if files and len(files) == 1 else files
        self.resumable = resumable
        self.resume = resume
        self.manifest = manifest
        self.source = _source(folder, s3, urls_file)

    def upload(self, client: TemiClient) -> Source:
        """Uploads the archive, continuing `--resume`, and returns the finished upload."""
        assert isinstance(self.files, Path)
        with transfer_progress("upload") as progress:
            upload = client.upload_resumable(self.files, upload=self.resume, progress=progress)
        return {"type": "upload", "upload_id": upload.id}


@app.command()
def create(
    ctx: typer.Context,
    files: Files = None,
    name: Annotated[str | None, typer.Option(help="Default: from the files.")] = None,
    labels_from: LabelsOption = "none",
    resumable: Resumable = None,
    resume: Resume = None,
    server_folder: ServerFolder = None,
    s3: S3 = None,
    urls_file: UrlsFile = None,
    manifest: Manifest = None,
    webhook_url: WebhookUrl = None,
    priority: Priority = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Create a dataset from an archive, a folder, images, or a source the service can read."""
    images = _ImageSource(files, resumable, resume, server_folder, s3, urls_file, manifest)
    options = {"webhook_url": webhook_url, "priority": priority}
    with connect_for_transfer(ctx) as client:
        job = _create(client, images, name, labels_from, options)
        report_job(client, job, wait, as_json)


@app.command()
def append(
    ctx: typer.Context,
    dataset_id: DatasetId,
    files: Files = None,
    labels_from: LabelsOption = "none",
    resumable: Resumable = None,
    resume: Resume = None,
    server_folder: ServerFolder = None,
    s3: S3 = None,
    urls_file: UrlsFile = None,
    manifest: Manifest = None,
    webhook_url: WebhookUrl = None,
    priority: Priority = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Add images to a dataset, from the same sources as `create`."""
    images = _ImageSource(files, resumable, resume, server_folder, s3, urls_file, manifest)
    options = {"webhook_url": webhook_url, "priority": priority}
    with connect_for_transfer(ctx) as client:
        job = _append(client, dataset_id, images, labels_from, options)
        report_job(client, job, wait, as_json)


def _create(
    client: TemiClient,
    images: _ImageSource,
    name: str | None,
    labels_from: LabelsFrom,
    options: dict[str, Any],
) -> Job:
    if images.manifest:
        return client.upload_manifest(images.manifest, name=name, **options)
    if images.source or images.resume:
        source = images.source or images.upload(client)
        dataset_name = name or _default_name(images)
        return client.create_dataset(source, name=dataset_name, labels_from=labels_from, **options)
    with transfer_progress("upload") as progress:
        return client.upload_dataset(
            images.files or [],
            name=name,
            labels_from=labels_from,
            resumable=images.resumable,
            progress=progress,
            **options,
        )


def _append(
    client: TemiClient,
    dataset_id: str,
    images: _ImageSource,
    labels_from: LabelsFrom,
    options: dict[str, Any],
) -> Job:
    if images.manifest:
        return client.append_manifest(dataset_id, images.manifest, **options)
    if images.source or images.resume:
        source = images.source or images.upload(client)
        return client.append_source(dataset_id, source, labels_from=labels_from, **options)
    with transfer_progress("upload") as progress:
        return client.append_images(
            dataset_id,
            images.files or [],
            labels_from=labels_from,
            resumable=images.resumable,
            progress=progress,
            **options,
        )


def _source(folder: str | None, s3: str | None, urls_file: Path | None) -> Source | None:
    if folder:
        return {"type": "folder", "path": folder}
    if s3:
        return {"type": "objects", "url": s3}
    if urls_file:
        lines = [line.strip() for line in urls_file.read_text(encoding="utf-8").splitlines()]
        return {"type": "urls", "urls": [line for line in lines if line]}
    return None


def _default_name(images: _ImageSource) -> str:
    """Returns the last part of the source's path or URL, without suffixes."""
    source: dict[str, Any] = dict(images.source or {})
    location = source.get("path") or source.get("url") or images.files or "images"
    return Path(str(location)).name.split(".")[0] or "images"
