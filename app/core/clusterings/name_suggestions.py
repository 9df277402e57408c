"""Suggests names for clusters: by texts, by the backbone's own classifier, and by file names.

A cluster is compared with those nearest to it: a name says what distinguishes it. Suggestions are
kept until the clustering changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.rows import get_clustering, representative_ids
from app.core.clusterings.similarity import (
    Centers,
    clustering_state,
    current_centers,
    read_center_changes,
)
from app.core.datasets.features import (
    classifier_key,
    computing,
    open_features,
    row_chunks,
    to_hashes,
)
from app.core.platform.byte_cache import ByteCache
from app.core.platform.db import Database
from app.core.platform.errors import FeaturesMissing, InvalidRequest, NotFound
from app.core.platform.streams import batched
from app.core.platform.tables import Cluster, Clustering, Image
from app.core.storage import Storage
from temi.naming.classifier import Classifier
from temi.naming.imagenet import with_broader_words
from temi.naming.scores import (
    Strengths,
    Suggestion,
    combine,
    distinctive,
    softmax,
    text_strengths,
)
from temi.naming.terms import term_strengths, terms_of

MAX_CLUSTERS = 200  # in one request
COUNT = 3  # names of each cluster
_NEAR = 5  # clusters that a cluster is compared with
_SAMPLED = 32  # images of a cluster: its most probable ones
_CANDIDATES = 12  # of each source
_IN_VALUES = 5_000
_KEPT_BYTES = 8 * 1024**2


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Words, and their vectors in the space of the features."""

    words: Sequence[str]
    vectors: npt.NDArray[np.float32]  # (W, D)
    key: str  # differs for other words and other vectors


@dataclass(frozen=True, kw_only=True)
class ClusterNames:
    cluster_id: int
    label: str  # the current name
    suggestions: list[Suggestion]  # best first

    @property
    def nbytes(self) -> int:
        return 500 + 200 * len(self.suggestions)


@dataclass(frozen=True, kw_only=True)
class NameSuggestions:
    revision: int
    clusters: list[ClusterNames]


class _Sample(NamedTuple):
    """An image that stands for its cluster."""

    sha256: str
    terms: set[str]


_kept = ByteCache[ClusterNames](_KEPT_BYTES)


def suggest_names(
    db: Database,
    storage: Storage,
    tenant: str,
    clustering_id: str,
    cluster_ids: Sequence[int] | None = None,
    vocabulary: Vocabulary | None = None,
) -> NameSuggestions:
    """Names for these clusters, or for all; with a vocabulary also by its words."""
    with computing():
        with db.snapshot() as session:
            clustering = get_clustering(session, tenant, clustering_id)
            labels = _labels(session, clustering, cluster_ids)
            keys = {one: _cache_key(clustering, one, vocabulary) for one in labels}
            found = {one: kept for one in labels if (kept := _kept.get(keys[one])) is not None}
            unknown = [one for one in labels if one not in found]
            changes = read_center_changes(session, clustering) if unknown else None
        if changes is not None:
            try:
                centers = current_centers(storage, clustering, changes)
            except FeaturesMissing:
                centers = None
            new = _suggest(db, storage, clustering, unknown, centers, vocabulary)
            for one in unknown:
                names = ClusterNames(
                    cluster_id=one, label=labels[one], suggestions=new.get(one, [])
                )
                _kept.add(keys[one], names)
                found[one] = names
    clusters = [found[one] for one in labels]
    return NameSuggestions(revision=clustering.revision, clusters=clusters)


def _labels(
    session: Session, clustering: Clustering, cluster_ids: Sequence[int] | None
) -> dict[int, str]:
    """The names of the clusters by id, in the order of the ids."""
    columns = select(Cluster.cluster_id, Cluster.label).where(
        Cluster.clustering_id == clustering.id, Cluster.active
    )
    if cluster_ids is not None:
        columns = columns.where(Cluster.cluster_id.in_(cluster_ids))
    elif clustering.n_clusters > MAX_CLUSTERS:
        raise InvalidRequest.field(
            "cluster_id",
            f"name up to {MAX_CLUSTERS} of the {clustering.n_clusters:,} clusters",
        )
    rows = session.execute(columns.order_by(Cluster.cluster_id))
    found = {row.cluster_id: row.label for row in rows}
    for cluster_id in cluster_ids or ():
        if cluster_id not in found:
            raise NotFound(f"There is no cluster {cluster_id} in this clustering.")
    return found


def _cache_key(clustering: Clustering, cluster_id: int, vocabulary: Vocabulary | None) -> Any:
    return (*clustering_state(clustering), cluster_id, vocabulary.key if vocabulary else None)


def _suggest(
    db: Database,
    storage: Storage,
    clustering: Clustering,
    cluster_ids: Sequence[int],
    centers: Centers | None,
    vocabulary: Vocabulary | None,
) -> dict[int, list[Suggestion]]:
    """The names of the clusters that have images."""
    near = centers.nearest(cluster_ids, _NEAR) if centers is not None else {}
    groups = list(dict.fromkeys([*cluster_ids, *(one for some in near.values() for one in some)]))
    with db.read() as session:
        samples = _read_samples(session, clustering.id, groups)
    groups = [group for group in groups if samples[group]]
    place = {group: number for number, group in enumerate(groups)}
    named = [one for one in cluster_ids if one in place]
    others = [
        np.array([place[one] for one in near.get(group, ()) if one in place], dtype=np.int64)
        for group in named
    ]
    found: list[dict[str, dict[str, float]]] = [{} for _ in named]
    sources = {
        "vocabulary": _by_vocabulary(groups, centers, vocabulary),
        "classifier": _by_classifier(storage, clustering, [samples[group] for group in groups]),
        "files": term_strengths([[one.terms for one in samples[group]] for group in groups]),
    }
    for source, (words, strength) in sources.items():
        scores = distinctive(strength, [place[group] for group in named], others)
        for number, row in enumerate(scores):
            best = np.argsort(-row, kind="stable")[:_CANDIDATES]
            found[number][source] = {words[at]: float(row[at]) for at in best if row[at] > 0}
    return {group: combine(scores, COUNT) for group, scores in zip(named, found, strict=True)}


def _read_samples(
    session: Session, clustering_id: str, groups: Sequence[int]
) -> dict[int, list[_Sample]]:
    ids = representative_ids(session, clustering_id, groups, _SAMPLED)
    columns = select(Image.id, Image.name, Image.sha256, Image.attributes)
    wanted = [image_id for members in ids.values() for image_id in members]
    images: dict[str, _Sample] = {}
    for chunk in batched(wanted, _IN_VALUES):
        for row in session.execute(columns.where(Image.id.in_(chunk))):
            values = [value for value in row.attributes.values() if isinstance(value, str)]
            images[row.id] = _Sample(row.sha256, terms_of(row.name, values))
    return {
        group: [images[image_id] for image_id in sorted(ids.get(group, ())) if image_id in images]
        for group in groups
    }


def _by_vocabulary(
    groups: Sequence[int], centers: Centers | None, vocabulary: Vocabulary | None
) -> tuple[Sequence[str], Strengths]:
    if centers is None or vocabulary is None or not groups:
        return [], np.zeros((len(groups), 0))
    row = {cluster_id: number for number, cluster_id in enumerate(centers.cluster_ids.tolist())}
    directions = centers.directions[[row[group] for group in groups]]
    return vocabulary.words, text_strengths(directions, vocabulary.vectors)


def _by_classifier(
    storage: Storage, clustering: Clustering, samples: Sequence[Sequence[_Sample]]
) -> tuple[Sequence[str], Strengths]:
    """The mean probabilities of ImageNet's classes, if the backbone has a classifier for them."""
    nothing: tuple[Sequence[str], Strengths] = ([], np.zeros((len(samples), 0)))
    folder = clustering.embedding_folder
    if folder is None or not samples:
        return nothing
    try:
        classifier = Classifier.from_bytes(storage.read(classifier_key(folder)))
        stored = open_features(storage, folder)
        hashes = to_hashes([one.sha256 for group in samples for one in group])
        rows = stored.all_rows_of(hashes)
    except (FileNotFoundError, FeaturesMissing):
        return nothing
    weight, bias = (part.astype(np.float64) for part in (classifier.weight, classifier.bias))
    group = np.repeat(np.arange(len(samples)), [len(some) for some in samples])
    sums = np.zeros((len(samples), len(classifier.names)))
    for chunk in row_chunks(len(rows)):
        logits = stored.features[rows[chunk]].astype(np.float64) @ weight.T + bias
        np.add.at(sums, group[chunk], softmax(logits))
    return with_broader_words(classifier.names, sums / np.bincount(group)[:, None])
