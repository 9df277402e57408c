"""Tables that several commands print."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from app.cli.output import percent, print_table
from temi_client import Cluster, Clustering, Predictions

_EXAMPLES = 3
_METHODS = {"temi": "TEMI", "kmeans": "k-means, same features"}


def print_clusters(clusters: Iterable[Cluster], mostly: Mapping[int, str] | None = None) -> None:
    """`mostly` adds the true group that most images of a cluster belong to."""
    rows = (
        (
            cluster.cluster_id,
            cluster.label,
            *([] if mostly is None else [mostly.get(cluster.cluster_id, "-")]),
            cluster.size,
            percent(cluster.mean_probability),
            ", ".join(short_name(example.name) for example in cluster.examples[:_EXAMPLES]),
        )
        for cluster in clusters
    )
    extra = [] if mostly is None else ["mostly"]
    columns = [">id", "label", *extra, ">images", ">mean prob.", "surest images"]
    print_table("Clusters", columns, rows)


def print_metrics(clustering: Clustering) -> None:
    """Nothing is printed where the images came without labels."""
    scores = {name: clustering.metrics.get(name) for name in _METHODS}
    rows = [
        (_METHODS[name], *(percent(score.get(key)) for key in ("accuracy", "nmi", "ari")))
        for name, score in scores.items()
        if score and score.get("accuracy") is not None
    ]
    if rows:
        labeled = (scores["temi"] or {}).get("n_labeled", clustering.image_count)
        title = f"Agreement with the labels of {labeled} images"
        print_table(title, ["method", ">ACC", ">NMI", ">ARI"], rows)


def print_predictions(
    predictions: Predictions,
    truth: Mapping[str, str] | None = None,
    mostly: Mapping[int, str] | None = None,
) -> None:
    """One row an image; `truth` adds what it shows, `mostly` what its cluster mostly holds."""
    rows = []
    for found in predictions.data:
        if found.error:
            label, sure, others = f"not read: {found.error.detail}", "-", ""
        else:
            label, sure = str(found.label), percent(found.probability)
            if mostly is not None and found.cluster_id is not None:
                label += f": {mostly.get(found.cluster_id, '-')}"
            others = ", ".join(f"{o.label} {percent(o.probability)}" for o in found.top_k[1:])
        real = [truth.get(found.image, "?")] if truth is not None else []
        tail = [] if truth is not None else [others]
        rows.append((short_name(found.image), *real, label, sure, *tail))
    version = f"{predictions.model.name}, version {predictions.model.version}"
    label_title = "label" if mostly is None else "label: mostly"
    real_title = [] if truth is None else ["true group"]
    columns = ["image", *real_title, label_title, ">probability"]
    print_table(f"Predictions of {version}", columns + ([] if truth else ["next"]), rows)


def short_name(name: str) -> str:
    return PurePosixPath(name).name
