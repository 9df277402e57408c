"""`temi proposals`: groups of images that a model has refused."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli.connection import connect
from app.cli.options import AsJson, Name, OutFile, OutFileOrFolder, Yes, confirm
from app.cli.output import (
    format_time,
    notices,
    percent,
    print_item,
    print_rows,
    print_saved,
    write_bytes,
)
from app.cli.progress import transfer_progress
from temi_client import ProposalStatus

app = typer.Typer(no_args_is_help=True, help="Decide on groups of images that a model refused.")
ProposalId = Annotated[str, typer.Argument(metavar="PROPOSAL")]
RefusedId = Annotated[str, typer.Argument(metavar="REFUSED_IMAGE")]


@app.command("list")
def list_proposals(
    ctx: typer.Context,
    name: Name,
    status: Annotated[ProposalStatus, typer.Option(help="Only those with this status.")] = "open",
    as_json: AsJson = False,
) -> None:
    """List the proposed groups of a model, newest first."""
    with connect(ctx) as client:
        print_rows(
            client.proposals(name, status=status),
            as_json,
            f"Proposed groups of {name}",
            ["proposal", ">version", ">images", ">tightness", "group", "created"],
            lambda found: (
                found.id,
                found.model.version,
                found.size,
                f"{found.tightness:.2f}",
                _group(found.cluster_id, found.suggested_cluster_id),
                format_time(found.created_at),
            ),
        )


@app.command("show")
def show(ctx: typer.Context, proposal_id: ProposalId, as_json: AsJson = False) -> None:
    """Show a proposed group and its most typical images."""
    with connect(ctx) as client:
        found = client.proposal(proposal_id)
    if as_json:
        return print_item(found, as_json, "")
    return print_rows(
        found.images,
        as_json,
        f"{found.status.capitalize()}: {found.size:,} images, tightness {found.tightness:.2f}",
        ["image", "name", ">novelty"],
        lambda image: (image.id, image.name, percent(image.novelty)),
    )


@app.command("accept")
def accept(
    ctx: typer.Context,
    proposal_id: ProposalId,
    new_cluster: Annotated[
        str | None, typer.Option("--new", metavar="LABEL", help="Name of a new group.")
    ] = None,
    cluster_id: Annotated[
        int | None, typer.Option("--cluster", min=0, help="Number of an existing group.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a proposal a new group of the model's clustering, or add it to one."""
    if (new_cluster is None) == (cluster_id is None):
        raise typer.BadParameter("Pass either --new or --cluster.")
    with connect(ctx) as client:
        found = client.accept_proposal(proposal_id, new_cluster=new_cluster, cluster_id=cluster_id)
    print_item(found, as_json, f"Accepted as group {found.cluster_id}")


@app.command("dismiss")
def dismiss(ctx: typer.Context, proposal_id: ProposalId, as_json: AsJson = False) -> None:
    """Delete the images of a proposal; similar ones are not proposed again."""
    with connect(ctx) as client:
        print_item(client.dismiss_proposal(proposal_id), as_json, f"Proposal {proposal_id}")


@app.command("kept")
def kept(ctx: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Show how many refused images of a model are kept, and how many may be."""
    with connect(ctx) as client:
        print_item(client.refused(name), as_json, f"Refused images of {name}")


@app.command("images")
def list_images(
    ctx: typer.Context,
    name: Name,
    proposal_id: Annotated[
        str | None, typer.Option("--proposal", help="Only the images of this proposal.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the refused images of a model, newest first."""
    with connect(ctx) as client:
        print_rows(
            client.refused_images(name, proposal_id=proposal_id),
            as_json,
            f"Refused images of {name}",
            ["image", "name", ">version", ">novelty", "proposal", "kept"],
            lambda image: (
                image.id,
                image.name,
                image.version,
                percent(image.novelty),
                image.proposal_id or "-",
                format_time(image.kept_at),
            ),
        )


@app.command("download")
def download(ctx: typer.Context, refused_id: RefusedId, out: OutFileOrFolder = None) -> None:
    """Download a refused image."""
    target = out or Path()
    with connect(ctx) as client:
        if target.is_dir():
            target = target / refused_id
        with transfer_progress(target.name) as progress:
            print_saved(client.refused_content(refused_id, target, progress=progress))


@app.command("thumbnail")
def thumbnail(
    ctx: typer.Context,
    refused_id: RefusedId,
    out: OutFile,
    size: Annotated[
        Literal["64", "128", "256", "512"], typer.Option(help="Longer side in pixels.")
    ] = "256",
) -> None:
    """Download a thumbnail of a refused image (WebP)."""
    with connect(ctx) as client:
        write_bytes(out, client.refused_thumbnail(refused_id, int(size)))


@app.command("delete")
def delete(ctx: typer.Context, refused_id: RefusedId, yes: Yes = False) -> None:
    """Delete a refused image, and take it out of its proposal."""
    with connect(ctx) as client:
        confirm(f"Delete {refused_id}?", yes)
        client.delete_refused(refused_id)
    notices.print(f"Deleted {refused_id}")


@app.command("delete-all")
def delete_all(ctx: typer.Context, name: Name, yes: Yes = False) -> None:
    """Delete all refused images of a model; open proposals end with them."""
    with connect(ctx) as client:
        count = client.refused(name).images
        confirm(f"Delete {count:,} refused images of {name}?", yes)
        client.delete_all_refused(name)
    notices.print(f"Deleted the refused images of {name}", markup=False)


def _group(cluster_id: int | None, suggested: int | None) -> str:
    if cluster_id is not None:
        return str(cluster_id)
    return "-" if suggested is None else f"like {suggested}"
