"""The result of a sweep as a table, and the value that it suggests."""

from collections.abc import Mapping
from math import exp
from typing import Any

from app.cli.output import percent, print_table, results
from temi.analysis.choice import doubt
from temi_client import Job

Steps = list[tuple[str, list[object]]]

_TITLES = {"n_clusters": "clusters"}
_EXPLANATION = (
    "confidence: mean probability of the chosen cluster. "
    "doubt: entropy of the probabilities, as a share of the highest possible; low if images "
    "belong clearly to one cluster. "
    "stability: how far clusterings of random parts of the images agree. "
    "even: how many clusters of equal size would be as uneven as these."
)


def print_sweep(job: Job) -> None:
    result = job.result or {}
    parameter, points = str(result["parameter"]), list(result["points"])
    labeled = any(point.get("accuracy") is not None for point in points)
    suggested = result.get("suggested")
    columns = [f">{_TITLES.get(parameter, parameter)}", ">confidence", ">doubt", ">even"]
    counts = parameter == "n_clusters"
    columns += [">stability"] if counts else []
    columns += [">accuracy"] if labeled else []
    rows = [
        (
            point[parameter],
            *_figures(job, point),
            *([percent(point.get("stability"))] if counts else []),
            *([percent(point.get("accuracy"))] if labeled else []),
            _remark(point[parameter], result),
        )
        for point in points
    ]
    print_table(f"Sweep {job.id}", [*columns, ""], rows, titled=True)
    if results.is_terminal:
        results.print(_EXPLANATION)
    results.print(_reason(parameter, suggested), soft_wrap=True)


def _remark(value: float, result: Mapping[str, Any]) -> str:
    if value == result.get("suggested"):
        return "suggested"
    return "plausible" if value in result.get("plausible", ()) else ""


def sweep_steps(job: Job) -> Steps:
    """The commands to look at the clusterings that the sweep kept, and to choose one."""
    result = job.result or {}
    parameter, suggested = result["parameter"], result.get("suggested")
    steps: Steps = [("draw the comparison", ["jobs", "plot", job.id, "--out", "sweep.png"])]
    chosen, model = "CLUSTERING", "MODEL"
    for point in result["points"]:
        clustering_id, value = point["clustering_id"], point[parameter]
        if clustering_id is None:
            continue
        what = f"the {value} clusters" if parameter == "n_clusters" else f"those of beta {value}"
        steps.append((f"look at {what}", ["clusterings", "clusters", clustering_id]))
        if value == suggested:
            chosen = clustering_id
            model = "{name}/versions/{version}".format(**point["model"])
    steps.append(("choose one for the labels", ["datasets", "use", job.dataset_id, chosen]))
    steps.append(("label new images with its model", ["predict", model, "FOLDER"]))
    return steps


def _figures(job: Job, point: Mapping[str, Any]) -> tuple[str, str, str]:
    count = _cluster_count(job, point)
    even = count * exp(-point["size_kl"])
    share = doubt(point["conditional_entropy"], count)
    return percent(point["mean_probability"]), percent(share), f"{even:.1f}"


def _cluster_count(job: Job, point: Mapping[str, Any]) -> int:
    return int(point.get("n_clusters") or job.config["train"][0]["n_clusters"])


def _reason(parameter: str, suggested: float | None) -> str:
    if parameter == "beta":
        if suggested is None:
            return "No beta is suggested: the doubt is high for each of them."
        return f"Suggested: beta {suggested}, the lowest from which on the doubt stays low."
    if suggested is None:
        return (
            "No number is suggested: there are too few images, or they form no groups. Choose the "
            "number whose clusters you can name."
        )
    return (
        f"Suggested: {suggested} clusters, which are stable and separate similar images the least. "
        "The plausible numbers are coarser or finer groups."
    )
