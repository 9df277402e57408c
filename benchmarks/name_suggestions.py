"""How often the class of a group is among the three names that are suggested for it.

.venv/bin/python -m benchmarks.name_suggestions --images photos.zip --images more.zip --seeds 3

The groups are those of k-means with the true number of classes. A group counts if one of its three
names is the name of its most frequent class, or a synonym of `SYNONYMS`. By files: a share of the
photos lies in a folder with the name of its class, the others in one folder without a name.
"""

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.sets import LabeledSet, images
from temi import load_backbone
from temi.analysis.kmeans import kmeans, unit_rows
from temi.backbones.classifier import Classifier
from temi.naming.imagenet import with_broader_words
from temi.naming.scores import Strengths, Suggestion, combine, distinctive, softmax
from temi.naming.terms import term_strengths, terms_of

# What counts for a class beside its own words; for everything else the names must be equal.
SYNONYMS = {
    "airplane": ("airliner", "aircraft", "warplane"),
    "automobile": ("car", "sports car", "convertible"),
    "deer": ("antelope",),
    "horse": ("sorrel",),
    "ship": ("boat", "container ship", "speedboat"),
    "truck": ("moving van", "trailer truck", "fire engine", "garbage truck"),
    "rose": ("hip",),
    "dRiverLake": ("lake", "river", "lakeside"),
    "eForest": ("forest", "tree"),
    "bField": ("field", "crop", "farmland"),
    "aGrass": ("grass", "meadow", "lawn"),
    "fResident": ("house", "building", "tile roof", "suburb"),
    "gParking": ("parking lot", "car"),
    "cIndustry": ("factory", "warehouse", "industry"),
    "Apple": ("Granny Smith",),
    "Pepper": ("bell pepper",),
    "Grape": ("grapes",),
}
NAMES = 3
SAMPLED = 32
NEAR = 5
NAMED_SHARES = (0.05, 0.2, 1.0)  # of the photos whose folder has the name of their class


def groups_of(found: LabeledSet, seed: int) -> tuple[list[npt.NDArray[np.int64]], list[list[int]]]:
    """The rows nearest to the center of each group, and the groups nearest to each group."""
    units = unit_rows(found.features)
    group = kmeans(found.features, found.n_clusters, seed=seed)
    centers = unit_rows(
        np.stack([units[group == number].mean(axis=0) for number in range(found.n_clusters)])
    )
    samples, near = [], []
    for number, center in enumerate(centers):
        rows = np.flatnonzero(group == number)
        samples.append(rows[np.argsort(-units[rows] @ center, kind="stable")[:SAMPLED]])
        order = np.argsort(-centers @ center, kind="stable")
        near.append([int(one) for one in order if one != number][:NEAR])
    return samples, near


def names_of(
    words: list[str], strength: Strengths, near: list[list[int]], source: str
) -> list[list[Suggestion]]:
    others = [np.array(some, dtype=np.int64) for some in near]
    scores = distinctive(strength, range(len(near)), others)
    return [
        combine({source: {words[at]: float(row[at]) for at in np.argsort(-row)[:12]}}, NAMES)
        for row in scores
    ]


def by_classifier(
    found: LabeledSet, samples: list[npt.NDArray[np.int64]], classifier: Classifier
) -> tuple[list[str], Strengths]:
    means = [
        softmax(found.features[rows].astype(float) @ classifier.weight.T + classifier.bias).mean(0)
        for rows in samples
    ]
    return with_broader_words(classifier.names, np.stack(means))


def by_files(
    found: LabeledSet, samples: list[npt.NDArray[np.int64]], share: float, seed: int
) -> tuple[list[str], Strengths]:
    named = np.random.default_rng(seed).random(len(found.labels)) < share
    folder = [label if named[row] else "unsorted" for row, label in enumerate(found.labels)]
    return term_strengths([[terms_of(f"{folder[row]}/{row}.jpg") for row in s] for s in samples])


def share_named(
    found: LabeledSet, samples: list[npt.NDArray[np.int64]], names: list[list[Suggestion]]
) -> float:
    hits = 0
    for rows, suggested in zip(samples, names, strict=True):
        label = Counter(found.labels[row] for row in rows).most_common(1)[0][0]
        hits += any(accepts(label, one.name) for one in suggested)
    return hits / len(samples)


def accepts(label: str, name: str) -> bool:
    """The words of the class, its first word (Apple of `Apple Golden 2`), or a synonym."""
    own = {*terms_of(label), label.split(" ")[0].casefold()}
    synonyms = (*SYNONYMS.get(label, ()), *SYNONYMS.get(label.split(" ")[0], ()))
    return name.casefold() in own | {word.casefold() for word in synonyms}


def measure(path: Path, backbone: str, seeds: int) -> dict[str, list[float]]:
    found = images(path, backbone)
    classifier = load_backbone(backbone, device="cpu").load_classifier()
    assert classifier is not None
    shares: dict[str, list[float]] = {}
    for seed in range(seeds):
        samples, near = groups_of(found, seed)
        purity = [
            Counter(found.labels[row] for row in rows).most_common(1)[0][1] / len(rows)
            for rows in samples
        ]
        shares.setdefault("purity", []).append(float(np.mean(purity)))
        names = names_of(*by_classifier(found, samples, classifier), near, "classifier")
        if seed == 0:
            for rows, suggested in zip(samples, names, strict=True):
                label = Counter(found.labels[row] for row in rows).most_common(1)[0][0]
                print(f"  {label}: {', '.join(f'{s.name} {s.score:.2f}' for s in suggested)}")
        shares.setdefault("classifier", []).append(share_named(found, samples, names))
        for share in NAMED_SHARES:
            names = names_of(*by_files(found, samples, share, seed), near, "files")
            column = f"files, {share:.0%} in named folders"
            shares.setdefault(column, []).append(share_named(found, samples, names))
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, action="append", required=True)
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    for path in given.images:
        print(path.stem)
        for column, values in measure(path, given.backbone, given.seeds).items():
            print(f"  {column}: {np.mean(values):.0%} ± {np.std(values):.0%}", flush=True)


if __name__ == "__main__":
    main()
