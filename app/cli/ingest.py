"""`temi datasets create` and `append`: images from here, or from where the service reaches."""

from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.connection import connect_for_transfer
from app.cli.options import AsJson, DatasetId, LabelsFrom, Priority, Wait, WebhookUrl
from app.cli.progress import report_job
from app.cli.transfers import transfer
from temi_client import Job, Source, TemiClient

Files = Annotated[
    list[Path] | None,
    typer.Argument(exists=True, metavar="FILES...", help="An archive, a folder, or images."),
]
Resumable = Annotated[
    bool | None,
    typer.Option(
        "--resumable/--no-resumable",
        help="In pieces that survive a broken line; by default for archives above 64 MiB.",
    ),
]
Resume = Annotated[
    str | None, typer.Option(metavar="UPLOAD", help="Go on with an upload that broke off.")
]
ServerFolder = Annotated[str | None, typer.Option(help="A folder of the server.")]
S3 = Annotated[str | None, typer.Option("--s3", help="s3://bucket/prefix")]
UrlsFile = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="A text file with one address a line."),
]
Manifest = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="A .csv or .jsonl that names the images."),
]


class _Choice:
    """Exactly one place that images come from."""

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
                "Name exactly one of FILES, --server-folder, --s3, --urls-file and --manifest."
            )
        if (resume or resumable) and not (files and len(files) == 1 and files[0].is_file()):
            raise typer.BadParameter("Only an archive can be sent in resumable pieces.")
        self.files = files[0] if files and len(files) == 1 else files
        self.resumable = resumable
        self.resume = resume
        self.manifest = manifest
        self.source = _source(folder, s3, urls_file)

    def finished_upload(self, client: TemiClient) -> Source:
        assert isinstance(self.files, Path)
        with transfer("upload") as progress:
            upload = client.upload_resumable(self.files, upload=self.resume, progress=progress)
        return {"type": "upload", "upload_id": upload.id}


def create(
    ctx: typer.Context,
    files: Files = None,
    name: Annotated[str | None, typer.Option(help="By default after the files.")] = None,
    labels_from: LabelsFrom = "none",
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
    """Make a dataset of an archive, a folder, images, or of what the service itself can reach."""
    choice = _Choice(files, resumable, resume, server_folder, s3, urls_file, manifest)
    told = {"webhook_url": webhook_url, "priority": priority}
    with connect_for_transfer(ctx) as client:
        job = _create(client, choice, name, labels_from, told)
        report_job(client, job, wait, as_json)


def append(
    ctx: typer.Context,
    dataset_id: DatasetId,
    files: Files = None,
    labels_from: LabelsFrom = "none",
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
    """Add images to a dataset; they come from wherever `create` takes them."""
    choice = _Choice(files, resumable, resume, server_folder, s3, urls_file, manifest)
    told = {"webhook_url": webhook_url, "priority": priority}
    with connect_for_transfer(ctx) as client:
        job = _append(client, dataset_id, choice, labels_from, told)
        report_job(client, job, wait, as_json)


def _create(
    client: TemiClient,
    choice: _Choice,
    name: str | None,
    labels_from: LabelsFrom,
    told: dict[str, Any],
) -> Job:
    if choice.manifest:
        return client.upload_manifest(choice.manifest, name=name, **told)
    if choice.source or choice.resume:
        source = choice.source or choice.finished_upload(client)
        called = name or _default_name(choice)
        return client.create_dataset(source, name=called, labels_from=labels_from, **told)
    with transfer("upload") as progress:
        return client.upload_dataset(
            choice.files or [],
            name=name,
            labels_from=labels_from,
            resumable=choice.resumable,
            progress=progress,
            **told,
        )


def _append(
    client: TemiClient,
    dataset_id: str,
    choice: _Choice,
    labels_from: LabelsFrom,
    told: dict[str, Any],
) -> Job:
    if choice.manifest:
        return client.append_manifest(dataset_id, choice.manifest, **told)
    if choice.source or choice.resume:
        source = choice.source or choice.finished_upload(client)
        return client.append_source(dataset_id, source, labels_from=labels_from, **told)
    with transfer("upload") as progress:
        return client.append_images(
            dataset_id,
            choice.files or [],
            labels_from=labels_from,
            resumable=choice.resumable,
            progress=progress,
            **told,
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


def _default_name(choice: _Choice) -> str:
    """After the last piece of where the images are."""
    source: dict[str, Any] = dict(choice.source or {})
    where = source.get("path") or source.get("url") or choice.files or "images"
    return Path(str(where)).name.split(".")[0] or "images"
