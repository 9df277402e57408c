"""Tables of clusters, metrics, predictions and comparisons."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from app.cli.output import percent, print_table
from temi_client import Cluster, Clustering, Comparison, Prediction
from temi_client.models.registry import ModelRef

EXAMPLES = 3  # of a cluster
_COMPARED_NAMES = 20  # `--json` has them all
_METHODS = {"temi": "TEMI", "kmeans": "k-means, same features"}


def print_clusters(clusters: Iterable[Cluster], majority: Mapping[int, str] | None = None) -> None:
    """`majority` adds a column with the true group of most images of a cluster."""
    rows = (
        (
            cluster.cluster_id,
            cluster.label,
            *([] if majority is None else [majority.get(cluster.cluster_id, "-")]),
            cluster.size,
            percent(cluster.mean_probability),
            ", ".join(short_name(example.name) for example in cluster.examples),
        )
        for cluster in clusters
    )
    extra = [] if majority is None else ["majority"]
    columns = [">id", "label", *extra, ">images", ">mean prob.", "most representative"]
    print_table("Clusters", columns, rows)


def print_metrics(clustering: Clustering) -> None:
    """Prints the metrics, or nothing if the dataset has no labels."""
    print_scores({name: clustering.metrics.get(name) or {} for name in _METHODS})


def describe_count(count: Mapping[str, Any]) -> str:
    """Tells why a number of clusters was chosen; `count` is that of a clustering's metrics."""
    if not count["suggested"]:
        return "The images are too few, or form no stable groups: 2 clusters were made."
    best, *others = count["suggested"]
    stability = next(each["stability"] for each in count["points"] if each["n_clusters"] == best)
    also = f"; {' and '.join(map(str, others))} would be plausible, too" if others else ""
    return f"Found {best} clusters, which are stable to {percent(stability)}{also}."


def print_scores(scores: Mapping[str, Mapping[str, Any]]) -> None:
    """Prints the agreement of each method with the true labels; nothing without labels."""
    measured = {name: one for name, one in scores.items() if one.get("accuracy") is not None}
    if not measured:
        return
    rows = [
        (_METHODS[name], *(percent(one.get(key)) for key in ("accuracy", "nmi", "ari")))
        for name, one in measured.items()
    ]
    labeled = next(iter(measured.values())).get("n_labeled")
    title = f"Agreement with the labels of {labeled} images"
    print_table(title, ["method", ">ACC", ">NMI", ">ARI"], rows, titled=True)


def print_predictions(
    predictions: Iterable[Prediction],
    model: ModelRef | None,
    truth: Mapping[str, str] | None = None,
    majority: Mapping[int, str] | None = None,
) -> None:
    """Prints one row per image. `model` is None if none has a prediction.

    `truth` adds the true group of each image, `majority` that of most images of its cluster.
    """
    rows = []
    for found in predictions:
        if found.error:
            label, sure, others = f"failed: {found.error.detail}", "-", ""
        else:
            label, sure = str(found.label), percent(found.probability)
            if majority is not None and found.cluster_id is not None:
                label += f": {majority.get(found.cluster_id, '-')}"
            others = ", ".join(f"{o.label} {percent(o.probability)}" for o in found.top_k[1:])
        real = [truth.get(found.image, "?")] if truth is not None else []
        tail = [] if truth is not None else [others]
        rows.append((found.image, *real, label, sure, *tail))
    title = f"Predictions of {model.name}, version {model.version}" if model else "Predictions"
    label_title = "label" if majority is None else "label: majority"
    real_title = [] if truth is None else ["true group"]
    columns = ["image", *real_title, label_title, ">probability"]
    print_table(title, columns + ([] if truth else ["?next"]), rows)


def short_name(name: str) -> str:
    return PurePosixPath(name).name


def print_comparison(found: Comparison) -> None:
    """Prints the agreement of two versions, and the settings, metrics and names that differ."""
    left, right = f"version {found.left}", f"version {found.right}"
    _print_agreement(found)
    _print_nonempty(
        "Settings that differ",
        ["setting", left, right],
        ((each.path, _short(each.left), _short(each.right)) for each in found.configuration),
    )
    _print_nonempty(
        "Metrics, each on the images that the version was trained on",
        ["metric", f">{left}", f">{right}", ">change"],
        (
            (each.path, _number(each.left), _number(each.right), _change(each.left, each.right))
            for each in found.metrics
        ),
    )
    names = found.cluster_names
    more = f" (the first {_COMPARED_NAMES} of {len(names)})" if len(names) > _COMPARED_NAMES else ""
    _print_nonempty(
        f"Cluster labels that differ{more}",
        [">cluster", left, right],
        ((each.path, each.left or "-", each.right or "-") for each in names[:_COMPARED_NAMES]),
    )


def _print_agreement(found: Comparison) -> None:
    both = found.assignments
    title = (
        f"{found.name}: versions {found.left} and {found.right} on {both.images:,} images "
        f"of {both.dataset_id}"
    )
    rows = [
        ("images in the same cluster", percent(both.same_cluster)),
        ("adjusted Rand index", _number(both.adjusted_rand_index)),
        ("normalized mutual information", _number(both.normalized_mutual_information)),
    ]
    print_table(title, ["agreement", ">value"], rows, titled=True)
    _print_nonempty(
        "Largest movements",
        [f"from, in version {found.left}", f"to, in version {found.right}", ">images", ">share"],
        (
            (
                f"{move.left_cluster_id}: {move.left_label}",
                f"{move.right_cluster_id}: {move.right_label}",
                f"{move.images:,}",
                percent(move.images / both.images),
            )
            for move in both.movements
        ),
    )


def _print_nonempty(title: str, columns: list[str], rows: Iterable[tuple[object, ...]]) -> None:
    if listed := list(rows):
        print_table(title, columns, listed, titled=True)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _change(left: float | None, right: float | None) -> str:
    if left is None or right is None or left == right:
        return ""
    return f"{right - left:+.4g}"


def _short(value: object) -> str:
    """Shortens hashes."""
    text = "-" if value is None else str(value)
    return f"{text[:12]}..." if len(text) == 64 and text.isalnum() else text
