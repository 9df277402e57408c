"""The paper's recipe as a plain loop: one module per head, in float32.

The reference for the training of `temi`, with which it shares no code.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional


class Head(nn.Module):
    def __init__(self, dim: int, n_clusters: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(dim, 512), nn.Linear(512, 256)
        for layer in (self.first, self.second):
            nn.init.trunc_normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)
        last = nn.Linear(256, n_clusters, bias=False)
        nn.init.trunc_normal_(last.weight, std=0.02)
        self.last = nn.utils.parametrizations.weight_norm(last)
        with torch.no_grad():
            self.last.parametrizations.weight.original0.fill_(1.0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.second(functional.gelu(self.first(x)))
        logits: Tensor = self.last(functional.normalize(x, dim=-1))
        return logits


class PaperTraining:
    def __init__(
        self,
        features: Tensor,
        neighbors: Tensor,
        n_clusters: int,
        *,
        n_heads: int,
        batch: int = 512,
        epochs: int = 200,
        warmup_epochs: int = 20,
        beta: float = 0.6,
        seed: int = 0,
    ) -> None:
        torch.manual_seed(seed)
        spread = features.std(dim=0, correction=0)
        self.x = (features - features.mean(dim=0)) / torch.where(spread > 0, spread, 1.0)
        self.neighbors, self.batch, self.beta = neighbors, batch, beta
        dim = features.shape[1]
        self.students = nn.ModuleList(Head(dim, n_clusters) for _ in range(n_heads))
        self.teachers = nn.ModuleList(Head(dim, n_clusters) for _ in range(n_heads))
        self.teachers.load_state_dict(self.students.state_dict())
        self.teachers.requires_grad_(False)
        weights = [p for p in self.students.parameters() if p.ndim > 1]
        biases = [p for p in self.students.parameters() if p.ndim == 1]
        groups = [{"params": weights}, {"params": biases, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-4 * batch / 256, weight_decay=1e-4)
        self.steps = math.ceil(epochs * len(features) / batch)
        self.warmup = min(warmup_epochs * len(features) // batch, self.steps // 10)
        self.occupancy = [torch.full((n_clusters,), 1 / n_clusters) for _ in range(n_heads)]
        self.step, self.losses = 0, torch.zeros(0, n_heads)
        self._batches = self._draw()

    def train_step(self) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = 1e-4 * self.batch / 256 * min(1.0, (self.step + 1) / max(1, self.warmup))
        views = self.x[torch.cat(next(self._batches))]  # (2B, D)
        with torch.no_grad():
            taught = [(teacher(views) / 0.1).softmax(-1) for teacher in self.teachers]
            pairs = [probs.chunk(2) for probs in taught]
            weight = torch.stack([(p * q).sum(-1) for p, q in pairs]).mean(0)  # (B,)
        losses = []
        for head, student in enumerate(self.students):
            use = taught[head].mean(0)
            self.occupancy[head] = 0.9 * self.occupancy[head] + 0.1 * use
            s1, s2 = (student(views) / 0.1).softmax(-1).chunk(2)
            t1, t2 = pairs[head]
            pmi = self._pmi(s1, t2, head) + self._pmi(s2, t1, head)
            losses.append((weight * -0.5 * pmi).mean())
        self.optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        self.optimizer.step()
        with torch.no_grad():
            for teacher, student in zip(
                self.teachers.parameters(), self.students.parameters(), strict=True
            ):
                teacher.mul_(0.996).add_(student, alpha=0.004)
        epoch = max(1, len(self.x) // self.batch)
        self.losses = torch.cat([self.losses, torch.stack(losses).detach()[None]])[-epoch:]
        self.step += 1

    @torch.no_grad()
    def predict(self) -> Tensor:
        best = int(self.losses.mean(0).argmin())
        clusters: Tensor = self.teachers[best](self.x).argmax(-1)
        return clusters

    def _pmi(self, student: Tensor, teacher: Tensor, head: int) -> Tensor:
        ratio = (student * teacher) ** self.beta / self.occupancy[head]
        return torch.log(ratio.sum(-1))

    def _draw(self) -> Iterator[tuple[Tensor, Tensor]]:
        n, k = self.neighbors.shape
        left = torch.empty(0, dtype=torch.int64)
        while True:
            while len(left) < self.batch:
                left = torch.cat([left, torch.randperm(n)])
            ids, left = left[: self.batch], left[self.batch :]
            yield ids, self.neighbors[ids, torch.randint(k, (self.batch,))]
