"""Names after a retraining: how many groups are kept, and whether names reach the right images.

.venv/bin/python -m benchmarks.retraining --images photos.zip --images more.zip --seeds 3

Each cluster is named by the class of most of its images. Then the same photos are clustered with
another seed, or all of them after the first 80 %, and the new clustering adopts the names with the
suggested decisions. "Right" is the share of images whose cluster has the name of their class; for
comparison, names that go to the cluster of the one-to-one matching with the most common images.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.core.clusterings.agreement import Overlap
from app.core.clusterings.operations import Rename
from app.core.clusterings.retraining import apply_adoption, plan_adoption, read_changes
from app.core.platform.migrations import upgrade
from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from benchmarks import sets
from benchmarks.methods import METHODS, TEMI
from benchmarks.rivals import Rival
from benchmarks.sets import LabeledSet
from tests.core.clustering_rows import TENANT, clusters, edit, places, retrain, store

CHANGES = {"another seed": 1.0, "80 % to 100 %": 0.8}  # the share of the images at first
Clusters = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Trial:
    """A clustering of some images by numbers of clusters, and a later one of all."""

    old: Clusters  # (M,)
    new: Clusters  # (N,)
    classes: list[str]  # (N,)


def make_trials(data: LabeledSet, seed: int, method: Rival) -> Iterator[tuple[str, Trial]]:
    """One for each change, with the same new clustering."""
    order = np.random.default_rng(seed).permutation(len(data.labels))
    features, classes = data.features[order], [data.labels[row] for row in order]
    new = method.fit(features, data.n_clusters, seed=2 * seed + 1).labels
    for change, share in CHANGES.items():
        first = features[: int(share * len(order))]
        old = method.fit(first, data.n_clusters, seed=2 * seed).labels
        yield change, Trial(old, new, classes)


def measure(trial: Trial, runtime: Runtime) -> dict[str, float]:
    n = len(trial.old)
    old = store(runtime, trial.old.tolist())
    names = _majority(trial.old, trial.classes[:n])
    for number, name in names.items():
        # Several clusters of a class are several groups: their names differ in what follows.
        edit(runtime, old, Rename(cluster_id=number, label=f"{name}|{number}"))
    new = retrain(runtime, old, trial.new.tolist())
    started = time.perf_counter()
    with runtime.db.read() as session:
        found = read_changes(session, TENANT, new.clustering_id, old.clustering_id)
    read = time.perf_counter()
    plan = plan_adoption(runtime.db, TENANT, new.clustering_id, old.clustering_id, {})
    with runtime.db.write() as session:
        apply_adoption(session, plan, revisions=None, since_revision=None, created_by=None)
    adopted = time.perf_counter()
    states = Counter(group.status for group in found.groups if group.named)
    labels = {number: label for number, (label, _) in clusters(runtime, new).items()}
    where = places(runtime, new)
    # "roses|3 (2)" is a part of a split, which has no name of its own yet.
    after = [labels[where[image]].split("|")[0] for image in new.images]
    shown = {label for label, active in clusters(runtime, new).values() if active}
    given = [f"{name}|{number}" for number, name in names.items()]
    pairs, count = np.unique(np.stack([trial.old, trial.new[:n]]), axis=1, return_counts=True)
    matched = Overlap(pairs[0], pairs[1], count.astype(np.int64)).matched()
    assigned = {int(b): names[int(a)] for a, b in pairs.T[matched]}
    return {
        "groups": len(given),
        **{status: 100 * states[status] / len(given) for status in ("kept", "split", "merged")},
        "vanished": 100 * states["vanished"] / len(given),
        "rejected": 100 * sum(g.suggested == "reject" for g in found.groups) / len(given),
        "names left": 100 * sum(name in shown for name in given) / len(given),
        "right before": _right([names[int(number)] for number in trial.old], trial.classes[:n]),
        "right after": _right(after, trial.classes),
        "right, matching": _right(
            [assigned.get(int(number), "") for number in trial.new], trial.classes
        ),
        "best possible": _right(
            [_majority(trial.new, trial.classes)[int(number)] for number in trial.new],
            trial.classes,
        ),
        "seconds to read": read - started,
        "seconds to adopt": adopted - read,
    }


def _majority(numbers: Clusters, classes: list[str]) -> dict[int, str]:
    found: dict[int, Counter[str]] = {}
    for number, name in zip(numbers.tolist(), classes, strict=True):
        found.setdefault(number, Counter())[name] += 1
    return {number: counts.most_common(1)[0][0] for number, counts in sorted(found.items())}


def _right(names: list[str], classes: list[str]) -> float:
    return 100 * statistics.fmean(a == b for a, b in zip(names, classes, strict=True))


def _new_runtime(folder: Path) -> Runtime:
    runtime = Runtime(Settings(_env_file=None, data_dir=folder))
    upgrade(runtime.db)
    return runtime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, action="append", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--method", default=TEMI.name, choices=METHODS)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for data in map(sets.images, arguments.images):
        for seed in range(arguments.seeds):
            for change, trial in make_trials(data, seed, METHODS[arguments.method]):
                with tempfile.TemporaryDirectory() as folder:
                    runtime = _new_runtime(Path(folder))
                    figures = measure(trial, runtime)
                    runtime.db.dispose()
                rows.append({"set": data.name, "change": change, "seed": seed, **figures})
                print(json.dumps(rows[-1]), flush=True)
    print(f"\n{table(rows)}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1))


def table(rows: list[dict[str, Any]]) -> str:
    """Means and deviations over the seeds, in Markdown."""
    names = [name for name in rows[0] if name not in ("set", "change", "seed")]
    lines = [f"| set | change | {' | '.join(names)} |", f"|{'---|' * (len(names) + 2)}"]
    for key in dict.fromkeys((row["set"], row["change"]) for row in rows):
        same = [row for row in rows if (row["set"], row["change"]) == key]
        cells = [_cell([row[name] for row in same]) for name in names]
        lines.append(f"| {' | '.join([*key, *cells])} |")
    return "\n".join(lines)


def _cell(values: list[float]) -> str:
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 and max(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{spread}"


if __name__ == "__main__":
    main()
