"""Distills target probabilities into one head on plain features, so that predictions stay cheap."""

import math

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from temi.config import TrainConfig
from temi.device import torch_threads
from temi.training.head_groups import new_heads
from temi.training.heads import Heads
from temi.training.optimizer import RestorableAdamW

_EPOCHS = 30
_MIN_STEPS = 300
_BATCH = 256
_WARMUP = 0.1


def distill(rows: Tensor, targets: Tensor, config: TrainConfig) -> Heads:
    """Train one head so that its probabilities for rows (n, P) are the targets (n, C)."""
    generator = torch.Generator().manual_seed(config.seed)
    head = new_heads(config, 1, rows.shape[1], generator).to(rows.device)
    optimizer = RestorableAdamW(
        head, [(head.decayed(), config.weight_decay), (head.undecayed(), 0.0)]
    )
    steps = max(_MIN_STEPS, _EPOCHS * len(rows) // _BATCH)
    with torch_threads(1):  # on several cores a product rounds differently
        for step in range(steps):
            ids = torch.randint(len(rows), (_BATCH,), generator=generator).to(rows.device)
            log_probs = log_softmax(head(rows[ids])[0] / config.temperature, dim=-1)  # (B, C)
            loss = -(targets[ids] * log_probs).sum(dim=-1).mean()
            loss.backward()  # type: ignore[no-untyped-call]
            rate = _rate(step, steps, config.learning_rate)
            optimizer.step(rate, rate)
    return head.requires_grad_(False)


def _rate(step: int, steps: int, peak: float) -> float:
    warmup = (step + 1) / max(1.0, _WARMUP * steps)
    return peak * min(1.0, warmup) * (0.5 + 0.5 * math.cos(math.pi * step / steps))
