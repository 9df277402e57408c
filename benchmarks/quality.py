"""Quality of the clusters: TEMI and its rivals on the same features, over several seeds.

.venv/bin/python -m benchmarks.quality
.venv/bin/python -m benchmarks.quality --images photos.zip --images more.zip --seeds 5
.venv/bin/python -m benchmarks.quality --quick
"""

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import sets
from benchmarks.conditions import CONDITIONS, make_trial
from benchmarks.methods import METHODS, NOISY, TEMI
from benchmarks.rivals import Rival
from benchmarks.sets import LabeledSet
from temi.analysis.metrics import evaluate
from temi.analysis.seeds import run_seeds

DEFAULT = ("k-means", "SCAN", "PMI", "WPMI", "TEMI")  # of `make bench`
QUICK = ("k-means", "spectral", "TEMI")
# New, few and uneven images are also measured for these.
COMPARED = ("k-means", "TEMI")
SCORES = ("ACC", "NMI", "ARI")
Row = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """One row of the result; it is computed in a process of its own."""

    data: LabeledSet
    method: str
    condition: str
    seeds: int


def measure(data: LabeledSet, method: str, seeds: int, condition: str = "all") -> Row:
    fitted = NOISY if condition == "noise" and method == TEMI.name else METHODS[method]
    found = run_seeds(lambda seed: _one(data, fitted, condition, seed), range(seeds))
    row: Row = {"set": data.name, "images": len(data.labels), "condition": condition}
    row |= {"method": method, "seeds": seeds}
    for name, figure in found.metrics.items():
        row[name] = figure.mean
        row[f"{name} deviation"] = figure.std
    return row


def _one(data: LabeledSet, method: Rival, condition: str, seed: int) -> Mapping[str, float]:
    trial = make_trial(condition, data, seed)
    labels = [data.labels[row] for row in trial.trained]
    started = time.perf_counter()
    fitted = method.fit(data.features[trial.trained], len(set(labels)), seed=seed)
    seconds = time.perf_counter() - started
    clusters = fitted.labels
    if trial.measured is not trial.trained:
        clusters = fitted.predict(data.features[trial.measured])
        labels = [data.labels[row] for row in trial.measured]
    scores = evaluate(labels, clusters)
    assert scores.accuracy is not None
    assert scores.nmi is not None
    assert scores.ari is not None
    values = (scores.accuracy, scores.nmi, scores.ari)
    return {**dict(zip(SCORES, (100 * value for value in values), strict=True)), "seconds": seconds}


def run(chosen: list[LabeledSet], seeds: int, methods: Iterable[str]) -> Iterator[Row]:
    """All images of each set, one method after the other."""
    for data in chosen:
        for method in methods:
            yield measure(data, method, seeds)


def plan(
    chosen: list[LabeledSet], seeds: int, methods: Iterable[str], conditions: Iterable[str]
) -> list[Measurement]:
    """All methods on all images; other conditions for k-means and TEMI."""
    return [
        Measurement(data, method, condition, seeds)
        for data in chosen
        for condition in conditions
        for method in methods
        if condition == "all" or method in COMPARED
    ]


def run_parallel(planned: list[Measurement], processes: int) -> Iterator[Row]:
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        yield from pool.imap_unordered(_measure_planned, planned)


def _measure_planned(one: Measurement) -> Row:
    return measure(one.data, one.method, one.seeds, one.condition)


def table(rows: list[Row], condition: str) -> str:
    """A table in Markdown: one line per method, the best mean first; a column per set."""
    shown = [row for row in rows if row["condition"] == condition]
    names = list(dict.fromkeys(row["set"] for row in shown))
    lines = []
    for method in dict.fromkeys(row["method"] for row in shown):
        cells = {row["set"]: row for row in shown if row["method"] == method}
        mean = sum(row["ACC"] for row in cells.values()) / len(cells)
        seconds = sum(row["seconds"] for row in cells.values()) / len(cells)
        figures = " | ".join(_cell(cells[name]) if name in cells else "" for name in names)
        lines.append((mean, f"| {method} | {figures} | {mean:.1f} | {seconds:.1f} |"))
    head = f"| method | {' | '.join(names)} | mean | seconds |\n|{'---|' * (len(names) + 3)}"
    return "\n".join([head, *(line for _, line in sorted(lines, reverse=True))])


def _cell(row: Row) -> str:
    spread = row["ACC deviation"]
    return f"{row['ACC']:.1f}" + ("" if spread is None else f" ± {spread:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--images", type=Path, action="append", help="zip or folder with one folder per class"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", help=f"separated by commas, of: {', '.join(METHODS)}")
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    parser.add_argument("--quick", action="store_true", help="one seed, few methods")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    arguments = parser.parse_args()
    chosen = [sets.images(path) for path in arguments.images or ()] or [sets.digits(), sets.demo()]
    methods = tuple(arguments.methods.split(",")) if arguments.methods else tuple(METHODS)
    seeds, conditions = arguments.seeds, tuple(arguments.conditions.split(","))
    if arguments.quick:
        seeds, methods = 1, QUICK
    rows = []
    for row in run_parallel(plan(chosen, seeds, methods, conditions), arguments.processes):
        rows.append(row)
        scores = "  ".join(f"{name} {row[name]:5.1f}" for name in SCORES)
        print(f"{row['set']:14} {row['condition']:6} {row['method']:14} {scores}", flush=True)
    for condition in conditions:
        print(f"\nACC, {condition} images\n\n{table(rows, condition)}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
