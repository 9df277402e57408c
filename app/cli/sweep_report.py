"""The result of a sweep as a table, and the value that it suggests."""

from collections.abc import Mapping
from math import exp, log
from typing import Any

from app.cli.output import percent, print_table, results
from temi_client import Job

_TITLES = {"n_clusters": "clusters"}
# As in temi.analysis.sweep, which imports torch.
_CONFIDENT = 0.1
_EXPLANATION = (
    "confidence: mean probability of the chosen cluster. "
    "doubt: entropy of the probabilities, as a share of the highest possible; low if images "
    "belong clearly to one cluster. "
    "even: how many clusters of equal size would be as uneven as these."
)


def print_sweep(job: Job) -> None:
    result = job.result or {}
    parameter, points = str(result["parameter"]), list(result["points"])
    labeled = any(point.get("accuracy") is not None for point in points)
    suggested = result.get("suggested")
    columns = [f">{_TITLES.get(parameter, parameter)}", ">confidence", ">doubt", ">even"]
    columns += [">accuracy"] if labeled else []
    rows = [
        (
            point[parameter],
            *_figures(job, point),
            *([percent(point.get("accuracy"))] if labeled else []),
            "suggested" if point[parameter] == suggested else "",
        )
        for point in points
    ]
    print_table(f"Sweep {job.id}", [*columns, ""], rows, titled=True)
    if results.is_terminal:
        results.print(_EXPLANATION)
    results.print(_reason(parameter, suggested), soft_wrap=True)


def sweep_steps(job: Job) -> list[tuple[str, list[object]]]:
    result = job.result or {}
    suggested, point = result.get("suggested"), result["points"][0]
    if suggested is None or job.dataset_id is None:
        return []
    chosen: list[object] = ["--clusters", suggested]
    if result["parameter"] == "beta":
        chosen = ["--clusters", _cluster_count(job, point), "--beta", suggested]
    # A sweep keeps no clusterings.
    return [("cluster with it", ["jobs", "start", "cluster", job.dataset_id, *chosen, "--wait"])]


def _figures(job: Job, point: Mapping[str, Any]) -> tuple[str, str, str]:
    highest = log(_cluster_count(job, point))
    doubt = point["conditional_entropy"] / highest
    even = exp(highest - point["size_kl"])
    return percent(point["mean_probability"]), percent(doubt), f"{even:.1f}"


def _cluster_count(job: Job, point: Mapping[str, Any]) -> int:
    return int(point.get("n_clusters") or job.config["train"][0]["n_clusters"])


def _reason(parameter: str, suggested: float | None) -> str:
    if parameter == "beta":
        if suggested is None:
            return "No beta is suggested: the doubt is high for each of them."
        return f"Suggested: beta {suggested}, the lowest from which on the doubt stays low."
    limit = f"{_CONFIDENT:.0%}"
    if suggested is None:
        return (
            f"No number is suggested: the doubt is above {limit} for each of them. Try smaller "
            "numbers, or choose the one that you can name."
        )
    return (
        f"Suggested: {suggested} clusters, the largest number with a doubt of at most {limit}. "
        "With more, several clusters would share a group."
    )
