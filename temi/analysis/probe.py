"""The linear probe: a supervised linear classifier on the frozen features.

The settings are the paper's. Its accuracy is the reference for clustering on the same features.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from temi.analysis.metrics import number_labels
from temi.device import resolve_device
from temi.errors import InvalidConfig, TemiError
from temi.standardize import Standardizer, chunks, fit_standardizer

Features = npt.NDArray[np.floating]
Labels = Sequence[object | None]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    learning_rate: float = 1e-3  # with cosine decay to zero
    weight_decay: float = 1e-3  # as in Adam: part of the gradient
    epochs: int = 100
    batch_size: int = 256
    seed: int = 0  # for the order of the images

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise InvalidConfig(name, f"must be at least 1, not {getattr(self, name)}")
        if not self.learning_rate > 0:
            raise InvalidConfig("learning_rate", f"must be above 0, not {self.learning_rate}")
        if not self.weight_decay >= 0:
            raise InvalidConfig("weight_decay", f"must be at least 0, not {self.weight_decay}")


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearClassifier:
    classes: tuple[Hashable, ...]  # of the training labels, in order of first appearance
    weight: npt.NDArray[np.float32]  # (C, D), on standardized features
    bias: npt.NDArray[np.float32]  # (C,)
    standardizer: Standardizer

    def predict_codes(self, features: Features) -> Ids:
        """Return the index in ``classes`` of the most probable class: (N,)."""
        found = np.empty(len(features), dtype=np.int64)
        for rows in chunks(len(features)):
            logits = self.standardizer.apply(features[rows]) @ self.weight.T + self.bias
            found[rows] = logits.argmax(axis=1)
        return found

    def predict(self, features: Features) -> list[Hashable]:
        """Return the most probable label of each row."""
        return [self.classes[code] for code in self.predict_codes(features)]


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeResult:
    classifier: LinearClassifier
    train_accuracy: float
    test_accuracy: float | None  # None without labeled test images
    n_train: int  # labeled images
    n_test: int  # labeled images
    n_unlabeled: int  # images left out of both


def fit_probe(
    features: Features,
    labels: Labels,
    *,
    test: tuple[Features, Labels] | None = None,
    config: ProbeConfig | None = None,
    device: str = "auto",
) -> ProbeResult:
    """Train on the labeled rows, and score on them and on the labeled rows of ``test``.

    A test label that no training image has counts as an error.
    """
    test_features, test_labels = test or (features[:0], [])
    _check(features, labels)
    _check(test_features, test_labels)
    # Numbered together, so that classes that only the test has come after those of the training.
    codes, classes = number_labels([*labels, *test_labels])
    train_x, train_y = _labeled(features, codes[: len(labels)])
    test_x, test_y = _labeled(test_features, codes[len(labels) :])
    if len(train_y) == 0:
        raise TemiError("a linear probe needs labels, but no training image has one")
    classifier = _train(
        train_x, train_y, classes[: train_y.max() + 1], config or ProbeConfig(), device
    )
    return ProbeResult(
        classifier=classifier,
        train_accuracy=float((classifier.predict_codes(train_x) == train_y).mean()),
        test_accuracy=float((classifier.predict_codes(test_x) == test_y).mean())
        if len(test_y)
        else None,
        n_train=len(train_y),
        n_test=len(test_y),
        n_unlabeled=int((codes < 0).sum()),
    )


def _train(
    features: Features, codes: Ids, classes: tuple[Hashable, ...], config: ProbeConfig, device: str
) -> LinearClassifier:
    where = resolve_device(device)
    standardizer = fit_standardizer(features)
    if not np.isfinite(standardizer.mean).all():
        raise TemiError("features contain NaN or infinity")
    inputs = _standardized(features, standardizer, where)  # (N, D)
    targets = torch.from_numpy(codes).to(where)
    # The problem is convex, so the weights can start at zero and need no random numbers.
    weight = torch.zeros(len(classes), inputs.shape[1], device=where, requires_grad=True)
    bias = torch.zeros(len(classes), device=where, requires_grad=True)
    optimizer = torch.optim.Adam([weight, bias], weight_decay=config.weight_decay)
    n_steps = config.epochs * -(-len(codes) // config.batch_size)
    for step, batch in enumerate(_batches(len(codes), config)):
        ids = batch.to(where)
        for group in optimizer.param_groups:
            group["lr"] = _learning_rate(config, step / n_steps)
        optimizer.zero_grad()
        cross_entropy(inputs[ids] @ weight.T + bias, targets[ids]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return LinearClassifier(
        classes=classes,
        weight=weight.detach().cpu().numpy(),
        bias=bias.detach().cpu().numpy(),
        standardizer=standardizer,
    )


def _standardized(features: Features, standardizer: Standardizer, device: torch.device) -> Tensor:
    prepared = torch.empty(features.shape, device=device)
    for rows in chunks(len(features)):
        prepared[rows] = torch.from_numpy(standardizer.apply(features[rows])).to(device)
    return prepared


def _batches(n: int, config: ProbeConfig) -> Iterator[Tensor]:
    """Yield the ids of every step, shuffled in each epoch; drawn on the CPU for all devices."""
    generator = torch.Generator().manual_seed(config.seed)
    for _ in range(config.epochs):
        order = torch.randperm(n, generator=generator)
        for rows in chunks(n, config.batch_size):
            yield order[rows]


def _learning_rate(config: ProbeConfig, progress: float) -> float:
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))


def _labeled(features: Features, codes: Ids) -> tuple[Features, Ids]:
    known = codes >= 0
    # If all rows are labeled, the features are not copied: they may be a memory map.
    return (features, codes) if known.all() else (features[known], codes[known])


def _check(features: Features, labels: Labels) -> None:
    if features.ndim != 2 or len(features) != len(labels):
        raise TemiError(f"{len(labels)} labels do not fit features of shape {features.shape}")
