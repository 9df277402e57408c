"""`temi clusterings review`: how pure the clusters are, and what is left to look at."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.connection import connect
from app.cli.options import AsJson, ClusteringId, ImageId, Limit
from app.cli.output import format_time, notices, percent, print_item, print_rows
from app.cli.seen_revisions import remember_revision
from temi_client import (
    Answer,
    AnswerKind,
    ClusterReview,
    CollectionReview,
    Proof,
    ReviewOrder,
    StoredAnswers,
)

app = typer.Typer(no_args_is_help=True, help="Review clusters: purity, questions and answers.")

MinPurity = Annotated[
    float | None, typer.Option(min=0.5, max=0.999, help="Purity to prove; default: 0.95.")
]
ProofOption = Annotated[
    Proof | None,
    typer.Option(help="Prove each of the groups, or the collection as a whole; default: groups."),
]
_AT_ONCE = 500  # answers in one request


@app.command("report")
def report(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    min_purity: MinPurity = None,
    confidence: Annotated[
        float | None, typer.Option(min=0.5, max=0.999, help="Of the intervals; default: 0.95.")
    ] = None,
    target: Annotated[
        float | None, typer.Option(max=1, help="Share of the collection; default: 0.95.")
    ] = None,
    proof: ProofOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the purity of each cluster, and how much is left to review."""
    with connect(ctx) as client:
        found = client.review(
            clustering_id,
            min_purity=min_purity,
            confidence=confidence,
            target=target,
            proof=proof,
        )
    remember_revision(clustering_id, found.revision)
    if as_json:
        return print_item(found, as_json, "Review")
    print_rows(
        found.clusters,
        as_json,
        f"Purity of the clusters, {found.confidence:.0%} intervals",
        [">cluster", "label", ">images", ">reviewed", ">wrong", ">purity", "interval", ">left"],
        lambda row: (
            *(row.cluster_id, row.label, row.size, row.reviewed, row.wrong),
            *(percent(row.purity), _interval(row)),
            "done" if row.meets else row.answers_left,
        ),
    )
    if found.collection is not None:
        notices.print(_as_a_whole(found.collection), markup=False, soft_wrap=True)
    done, share = found.finished_images, found.finished_images / max(found.images, 1)
    notices.print(f"Finished: {done:,} of {found.images:,} images ({share:.0%})", markup=False)
    notices.print(found.forecast.summary, markup=False, soft_wrap=True)
    return None


def _as_a_whole(found: CollectionReview) -> str:
    """One line about the labels that can be exported together."""
    left = "proven" if found.meets else f"about {found.answers_left:,} answers left"
    purity = f"purity {percent(found.purity)}, {_interval(found)}"
    return f"As a whole: {found.images:,} images, {purity}, {left}"


def _interval(row: ClusterReview | CollectionReview) -> str:
    if row.lower is None:
        return "by the model"
    return f"{percent(row.lower)} to {percent(row.upper)}"


@app.command("queue")
def queue(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    order: Annotated[
        ReviewOrder | None,
        typer.Option(help="Only the random sample, or only images chosen for their gain."),
    ] = None,
    labeler: Annotated[
        str | None, typer.Option(help="Your name: others begin with other clusters.")
    ] = None,
    min_purity: MinPurity = None,
    proof: ProofOption = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List the images to review next."""
    with connect(ctx) as client:
        found = client.review_queue(
            clustering_id,
            limit=limit,
            order=order,
            labeler=labeler,
            min_purity=min_purity,
            proof=proof,
        )
    print_rows(
        found.data,
        as_json,
        f"Next images, about {found.expected_answers:,} answers are left",
        ["image", "name", ">cluster", "label", ">probability", "sample"],
        lambda one: (
            *(one.image_id, one.name, one.cluster_id, one.label, percent(one.probability)),
            "yes" if one.sample else "",
        ),
    )


@app.command("answer")
def answer(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    image_ids: Annotated[list[str] | None, typer.Argument(metavar="[IMAGES]")] = None,
    cluster: Annotated[
        int | None, typer.Option(min=0, help="The cluster that the images are in.")
    ] = None,
    kind: Annotated[
        AnswerKind | None,
        typer.Option("--answer", help="yes; no; which: see --belongs-to; none: exclude."),
    ] = None,
    belongs_to: Annotated[
        int | None, typer.Option(min=0, help="With `which`: the cluster to move to.")
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="The queue named them as a sample.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            help="Instead: what `queue --json` printed, with an `answer` each; - is stdin.",
            allow_dash=True,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer whether images belong to their cluster."""
    if (file is None) == (not image_ids) or (image_ids and (cluster is None or kind is None)):
        raise typer.BadParameter("Pass IMAGES with --cluster and --answer, or --file.")
    if file is not None:
        answers = _read_answers(file)
    else:
        common: dict[str, Any] = {"cluster_id": cluster, "answer": kind, "sample": sample}
        answers = [
            Answer(image_id=image, belongs_to=belongs_to, **common) for image in image_ids or ()
        ]
    with connect(ctx) as client:
        done = [
            client.answer_review(clustering_id, answers[start : start + _AT_ONCE])
            for start in range(0, len(answers), _AT_ONCE)
        ]
    stored = StoredAnswers(
        revision=done[-1].revision,
        stored=[image for one in done for image in one.stored],
        refused=[image for one in done for image in one.refused],
    )
    if as_json:
        return print_item(stored, as_json, "Answers")
    notices.print(f"Stored {len(stored.stored):,} answers; revision {stored.revision}")
    for one in stored.refused:
        place = "excluded" if one.cluster_id is None else f"in cluster {one.cluster_id}"
        notices.print(f"Not stored: {one.image_id} is {place} now", markup=False)
    return None


def _read_answers(file: Path) -> list[Answer]:
    """A JSON array as `queue --json` prints it, or JSON lines; other fields are ignored."""
    text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip()]
    answers: list[Answer] = []
    try:
        rows = json.loads(text) if text.lstrip().startswith("[") else map(json.loads, lines)
        for row in rows:
            fields = {name: row[name] for name in Answer.model_fields if name in row}
            answers.append(Answer.model_validate(fields))
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(f"Answer {len(answers) + 1} cannot be read: {error}") from error
    if not answers:
        raise typer.BadParameter("There is no answer in it.", param_hint="--file")
    return answers


@app.command("answers")
def list_answers(ctx: typer.Context, clustering_id: ClusteringId, as_json: AsJson = False) -> None:
    """List the answers, in the order of the upload."""
    with connect(ctx) as client:
        print_rows(
            client.review_answers(clustering_id),
            as_json,
            f"Answers about {clustering_id}",
            ["image", "name", ">cluster", "answer", ">belongs to", "?sample", "?by", "?time"],
            lambda one: (
                *(one.image_id, one.name, one.cluster_id, one.answer),
                "" if one.belongs_to is None else one.belongs_to,
                "yes" if one.sample else "",
                *(one.reviewed_by or "", format_time(one.reviewed_at)),
            ),
        )


@app.command("withdraw")
def withdraw(
    ctx: typer.Context, clustering_id: ClusteringId, image_id: ImageId, as_json: AsJson = False
) -> None:
    """Withdraw the answer about an image; it is moved back if the answer has moved it."""
    with connect(ctx) as client:
        client.withdraw_answer(clustering_id, image_id)
        if as_json:
            return print_item(client.clustering(clustering_id), as_json, "Clustering")
    notices.print(f"Withdrew the answer about {image_id}", markup=False)
    return None
