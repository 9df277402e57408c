"""References on the command line: an id, a name if it is unique, or `@last` for the newest."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import typer

from app.cli.connection import DEFAULT_SERVER, Connection, connect
from app.cli.output import format_time

if TYPE_CHECKING:
    from temi_client import Clustering, Dataset, Export, Job, TemiClient

LAST = "@last"
_SHOWN = 10  # candidates of an ambiguous name
_COMPLETIONS = 100
_COMPLETION_SECONDS = 1.0
_NEEDS_NO_QUOTES = re.compile(r"[\w.,+-]+")

Candidate = tuple[str, str]  # an id, and a description
Completions = list[tuple[str, str]]


def dataset_id(ctx: typer.Context, value: str | None) -> str | None:
    """A parameter callback: returns the id of a dataset."""
    return _resolve(ctx, value, "ds_", "dataset", _dataset_candidates)


def clustering_id(ctx: typer.Context, value: str | None) -> str | None:
    """The name of a dataset means its current clustering, that of a model those of its versions."""
    return _resolve(ctx, value, "cl_", "clustering", _clustering_candidates)


def job_id(ctx: typer.Context, value: str | None) -> str | None:
    return _resolve(ctx, value, "job_", "job", _job_candidates)


def export_id(ctx: typer.Context, value: str | None) -> str | None:
    return _resolve(ctx, value, "exp_", "export", _export_candidates)


def model_name(ctx: typer.Context, value: str | None) -> str | None:
    """Models are known by name; only `@last` is looked up."""
    if value != LAST or ctx.resilient_parsing:
        return value
    with connect(ctx) as client:
        newest = max(client.models(), key=lambda model: model.created_at, default=None)
    if newest is None:
        raise typer.BadParameter("There is no model yet.")
    return newest.name


def complete_datasets(ctx: typer.Context, incomplete: str) -> Completions:
    return _complete(ctx, incomplete, _offered_datasets)


def complete_clusterings(ctx: typer.Context, incomplete: str) -> Completions:
    return _complete(ctx, incomplete, _offered_clusterings)


def complete_models(ctx: typer.Context, incomplete: str) -> Completions:
    return _complete(ctx, incomplete, _offered_models)


def complete_jobs(ctx: typer.Context, incomplete: str) -> Completions:
    return _complete(ctx, incomplete, _offered_jobs)


def _resolve(
    ctx: typer.Context,
    value: str | None,
    prefix: str,
    kind: str,
    candidates: "Callable[[TemiClient, str | None], Iterator[Candidate]]",
) -> str | None:
    if value is None or value.startswith(prefix) or ctx.resilient_parsing:
        return value
    with connect(ctx) as client:
        if value == LAST:
            found = list(islice(candidates(client, None), 1))
        else:
            found = list(islice(candidates(client, value), _SHOWN + 1))
    if not found:
        known = "There is no {0} yet." if value == LAST else "There is no {0} {1!r}."
        hint = f" List them with: temi {kind}s list"
        raise typer.BadParameter(known.format(kind, value) + hint)
    if len(found) > 1:
        raise typer.BadParameter(_ambiguous(kind, value, found))
    return found[0][0]


def _ambiguous(kind: str, value: str, found: list[Candidate]) -> str:
    count = f"More than {_SHOWN}" if len(found) > _SHOWN else str(len(found))
    lines = [f"  {one}  {description}" for one, description in found[:_SHOWN]]
    return "\n".join([f"{count} {kind}s have the name {value!r}. Pass an id:", *lines])


def _dataset_candidates(client: "TemiClient", name: str | None) -> Iterator[Candidate]:
    return ((one.id, _describe_dataset(one)) for one in client.datasets(name=name))


def _clustering_candidates(client: "TemiClient", name: str | None) -> Iterator[Candidate]:
    found = client.clusterings() if name is None else _clusterings_named(client, name)
    return ((one.id, _describe_clustering(one)) for one in found)


def _job_candidates(client: "TemiClient", name: str | None) -> Iterator[Candidate]:
    """Jobs have no name: only the newest can be found without an id."""
    return iter(()) if name else ((one.id, _describe_job(one)) for one in client.jobs())


def _export_candidates(client: "TemiClient", name: str | None) -> Iterator[Candidate]:
    """The name of an export is that of its file."""
    found = (one for one in client.exports() if name in (None, one.filename))
    return ((one.id, _describe_export(one)) for one in found)


def _clusterings_named(client: "TemiClient", name: str) -> "Iterator[Clustering]":
    from temi_client import ApiError

    datasets = list(client.datasets(name=name))
    for dataset in datasets:
        if dataset.current_clustering_id:
            yield client.clustering(dataset.current_clustering_id)
        else:
            yield from client.clusterings(dataset_id=dataset.id)
    if datasets:
        return
    try:
        versions = list(client.model_versions(name))
    except ApiError:
        return  # no model of this name
    for version in versions:
        if version.clustering_id:
            try:
                yield client.clustering(version.clustering_id)
            except ApiError:
                continue  # deleted since


def _describe_dataset(one: "Dataset") -> str:
    return f"{format_time(one.created_at)}  {one.image_count:,} images"


def _describe_clustering(one: "Clustering") -> str:
    return (
        f"{format_time(one.created_at)}  {one.n_clusters:,} clusters, {one.image_count:,} images, "
        f"model {one.model.name} version {one.model.version}"
    )


def _describe_job(one: "Job") -> str:
    return f"{format_time(one.created_at)}  {one.kind}, {one.status}"


def _describe_export(one: "Export") -> str:
    return f"{format_time(one.created_at)}  {one.filename}, {one.image_count:,} images"


def _complete(
    ctx: typer.Context,
    incomplete: str,
    offered: "Callable[[TemiClient], Iterable[Candidate]]",
) -> Completions:
    """Returns nothing if the service does not answer soon: a shell must not wait or show errors."""
    options = ctx.find_root().params
    connection = Connection(options.get("server") or DEFAULT_SERVER, options.get("api_key"))
    try:
        with connection.client(retries=0, timeout=_COMPLETION_SECONDS) as client:
            found = list(islice(offered(client), _COMPLETIONS))
    except Exception:  # noqa: BLE001 - a completion has nowhere to report an error
        return []
    return [(value, text) for value, text in found if value.startswith(incomplete)]


def _offered_datasets(client: "TemiClient") -> Iterator[Candidate]:
    found = list(islice(client.datasets(), _COMPLETIONS))
    names = [one.name for one in found]
    for one in found:
        if names.count(one.name) == 1 and _NEEDS_NO_QUOTES.fullmatch(one.name):
            yield one.name, _describe_dataset(one)
        else:
            yield one.id, f"{one.name}, {_describe_dataset(one)}"


def _offered_clusterings(client: "TemiClient") -> Iterator[Candidate]:
    return ((one.id, _describe_clustering(one)) for one in client.clusterings())


def _offered_models(client: "TemiClient") -> Iterator[Candidate]:
    return ((one.name, f"version {one.latest_version}") for one in client.models())


def _offered_jobs(client: "TemiClient") -> Iterator[Candidate]:
    return ((one.id, _describe_job(one)) for one in client.jobs())
