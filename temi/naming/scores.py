"""How well words name groups of images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Strengths = npt.NDArray[np.float64]
"""How far each word applies to each group, from 0 to 1: (G, W)."""

_MIN_SCORE = 0.02  # of a name that is worth a look
_LOGIT_SCALE = 100.0  # by which CLIP models are trained to multiply cosines


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    name: str
    score: float  # from 0 to 1
    sources: tuple[str, ...]


def distinctive(
    strength: Strengths, groups: Sequence[int], near: Sequence[npt.NDArray[np.int64]]
) -> Strengths:
    """Return the strength of each word for some groups, reduced as far as the groups nearest to
    each, ``near``, share it: (groups, W).

    A word that applies to them as well as to the group itself gets 0, one that applies to none of
    them keeps its strength.
    """
    scores = np.empty((len(groups), strength.shape[1]))
    for number, (group, others) in enumerate(zip(groups, near, strict=True)):
        own = strength[group]
        shared = strength[others].mean(axis=0) if len(others) else np.zeros_like(own)
        total = np.maximum(own + shared, 1e-12)
        scores[number] = own * np.maximum(own - shared, 0.0) / total
    return scores


def text_strengths(centers: npt.NDArray[np.floating], texts: npt.NDArray[np.floating]) -> Strengths:
    """Return the probabilities of texts for the mean direction of each group, as CLIP models
    compare them: (G, W)."""
    return softmax(_LOGIT_SCALE * (_units(centers) @ _units(texts).T))


def softmax(logits: npt.NDArray[np.floating]) -> Strengths:
    """Return probabilities that sum to one in each row."""
    exact = np.asarray(logits, dtype=np.float64)
    powers = np.exp(exact - exact.max(axis=1, keepdims=True))
    shares: Strengths = powers / powers.sum(axis=1, keepdims=True)
    return shares


def combine(scores: Mapping[str, Mapping[str, float]], count: int) -> list[Suggestion]:
    """Return the best names of one group, by ``scores[source][name]``.

    A name of several sources is as likely as if they were independent. A name that only repeats
    words of a better one is left out.
    """
    missing: dict[str, float] = {}
    sources: dict[str, list[str]] = {}
    shown: dict[str, str] = {}
    for source, names in scores.items():
        for name, score in names.items():
            key = name.casefold()
            shown.setdefault(key, name)
            missing[key] = missing.get(key, 1.0) * (1.0 - score)
            sources.setdefault(key, []).append(source)
    ranked = sorted(missing, key=lambda key: (round(missing[key], 9), -len(key), key))
    best: list[str] = []
    for key in ranked:
        repeats = any(set(key.split()) <= set(kept.split()) for kept in best)
        if not repeats and 1.0 - missing[key] >= _MIN_SCORE:
            best.append(key)
    return [
        Suggestion(name=shown[key], score=round(1.0 - missing[key], 4), sources=tuple(sources[key]))
        for key in best[:count]
    ]


def _units(rows: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    exact = np.asarray(rows, dtype=np.float64)
    lengths = np.sqrt(np.einsum("nd,nd->n", exact, exact))[:, None]
    units: npt.NDArray[np.float64] = exact / np.maximum(lengths, 1e-12)
    return units
