"""The losses of the rivals against slow loops written from their formulas."""

import math

import pytest
import torch
from torch import Tensor

from benchmarks.rivals import iic
from benchmarks.rivals.iic import negative_information
from benchmarks.rivals.nnm import CLASS_TEMPERATURE, class_contrast
from benchmarks.rivals.sela import LAST_SINKHORN_STEPS, equal_partition
from benchmarks.rivals.sscn import COLUMN_TEMPERATURE, ROW_TEMPERATURE, uniform_cross_entropy
from benchmarks.rivals.tsp import sharpen
from benchmarks.rivals.turtle import ENTROPY_WEIGHT, labeling_loss

HEADS, PAIRS, CLUSTERS = 2, 5, 3


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("weight", [1.0, 1.5])
def test_iic(weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iic, "ENTROPY_WEIGHT", weight)
    probs = draw(HEADS, 2 * PAIRS, CLUSTERS).softmax(dim=-1)
    for head, found in enumerate(negative_information(probs).tolist()):
        joint = [[0.0] * CLUSTERS for _ in range(CLUSTERS)]
        for pair in range(PAIRS):
            for a in range(CLUSTERS):
                for b in range(CLUSTERS):
                    first, second = probs[head, pair], probs[head, PAIRS + pair]
                    joint[a][b] += float(first[a] * second[b] + first[b] * second[a]) / 2 / PAIRS
        total = 0.0
        for a in range(CLUSTERS):
            for b in range(CLUSTERS):
                expected = sum(joint[a]) * sum(row[b] for row in joint)
                total += joint[a][b] * (math.log(joint[a][b]) - weight * math.log(expected))
        assert found == pytest.approx(-total, rel=1e-4)


def test_sscn() -> None:
    logits, targets = draw(2, HEADS, PAIRS, CLUSTERS)
    for head, found in enumerate(uniform_cross_entropy(logits, targets).tolist()):
        rows = (logits[head] / ROW_TEMPERATURE).softmax(dim=1)
        columns = (targets[head] / COLUMN_TEMPERATURE).softmax(dim=0)
        total = 0.0
        for pair in range(PAIRS):
            for cluster in range(CLUSTERS):
                target = columns[pair, cluster] / columns[pair].sum()
                use = rows[:, cluster].sum()
                balanced = PAIRS / CLUSTERS * rows[pair, cluster] / use
                total -= float(target * balanced.log()) / PAIRS
        assert found == pytest.approx(total, rel=1e-4)


def test_one_cluster_for_all_is_not_optimal_for_sscn() -> None:
    collapsed = torch.tensor([1.0, 0.0, 0.0]).expand(1, 6, 3)
    spread = torch.eye(3).repeat(2, 1)[None]

    assert uniform_cross_entropy(spread, spread) < uniform_cross_entropy(collapsed, collapsed)


def test_nnm_contrast_of_clusters() -> None:
    first, second = draw(2, HEADS, PAIRS, CLUSTERS).softmax(dim=-1)
    for head, found in enumerate(class_contrast(first, second).tolist()):
        columns = [*first[head].T, *second[head].T]
        columns = [column / column.norm() for column in columns]
        total = 0.0
        for i, column in enumerate(columns):
            positive = (i + CLUSTERS) % (2 * CLUSTERS)
            similar = {
                j: math.exp(float(column @ other) / CLASS_TEMPERATURE)
                for j, other in enumerate(columns)
                if j != i
            }
            total -= math.log(similar[positive] / sum(similar.values())) / (2 * CLUSTERS)
        assert found == pytest.approx(total, rel=1e-4)


def test_turtle() -> None:
    logits, labels = draw(PAIRS, CLUSTERS), draw(PAIRS, CLUSTERS).mul(2).softmax(dim=-1)
    fit = -(labels * logits.log_softmax(dim=-1)).sum(dim=-1).mean()
    mean = labels.mean(dim=0)
    entropy = -(mean * mean.log()).sum()

    torch.testing.assert_close(labeling_loss(logits, labels), fit - ENTROPY_WEIGHT * entropy)


def test_sharpened_labels_are_more_confident_and_prefer_small_clusters() -> None:
    probs = torch.tensor([[0.6, 0.4], [0.9, 0.1], [0.9, 0.1]])
    sharp = sharpen(probs)

    torch.testing.assert_close(sharp.sum(dim=1), torch.ones(3))
    assert sharp[1, 0] > probs[1, 0]
    assert sharp[0, 0] < 0.6**2 / (0.6**2 + 0.4**2)


@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_the_partition_is_equal_even_if_all_rows_prefer_one_cluster(scale: float) -> None:
    logits = draw(HEADS, 120, 4) * scale
    logits[..., 0] += 5.0
    found = equal_partition(logits, LAST_SINKHORN_STEPS)

    assert found.shape == (HEADS, 120)
    if scale == 1.0:  # the others have ties or differences beyond the precision
        for head in found:
            sizes = torch.bincount(head, minlength=4)
            assert sizes.min() >= 24
            assert sizes.max() <= 36
