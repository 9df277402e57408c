"""All clustering heads as one module of stacked tensors.

Each head is Linear(D, hidden) - GELU - Linear(hidden, bottleneck) - L2-normalize -
weight-normalized Linear(bottleneck, C) without bias.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, normalize

from temi.model import ClusterModel
from temi.standardize import Standardizer

INIT_STD = 0.02


class Heads(nn.Module):
    """H independent heads over the same features; ``forward`` returns logits (H, B, C)."""

    def __init__(
        self,
        *,
        n_heads: int,
        dim: int,
        hidden_dim: int,
        bottleneck_dim: int,
        n_clusters: int,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.hidden_dim = hidden_dim
        # The first layers of all heads are stacked: one (B, D) x (D, H * hidden) product.
        self.w1 = nn.Parameter(torch.empty(n_heads * hidden_dim, dim))
        self.b1 = nn.Parameter(torch.zeros(n_heads * hidden_dim))
        self.w2 = nn.Parameter(torch.empty(n_heads, hidden_dim, bottleneck_dim))
        self.b2 = nn.Parameter(torch.zeros(n_heads, 1, bottleneck_dim))
        self.direction = nn.Parameter(torch.empty(n_heads, bottleneck_dim, n_clusters))
        # With magnitude 1 the initial logits are cosines for any size of the bottleneck.
        self.magnitude = nn.Parameter(torch.ones(n_heads, 1, n_clusters))
        for head in range(n_heads):  # one by one: a seed gives the same heads for any grouping
            self._initialize(head, generator)

    def _initialize(self, head: int, generator: torch.Generator | None) -> None:
        rows = slice(head * self.hidden_dim, (head + 1) * self.hidden_dim)
        with torch.no_grad():
            for weight in (self.w1[rows], self.w2[head], self.direction[head]):
                nn.init.trunc_normal_(weight, std=INIT_STD, generator=generator)

    def prototypes(self) -> Tensor:
        """Return the weight of the last layer: unit columns times their magnitudes."""
        return normalize(self.direction, dim=1) * self.magnitude  # (H, bottleneck, C)

    def forward(self, features: Tensor) -> Tensor:
        hidden = gelu(linear(features, self.w1, self.b1))  # (B, H * hidden)
        hidden = hidden.view(-1, self.n_heads, self.hidden_dim).transpose(0, 1)  # (H, B, hidden)
        bottleneck = torch.baddbmm(self.b2, hidden, self.w2)  # (H, B, bottleneck)
        return torch.bmm(normalize(bottleneck, dim=-1), self.prototypes())  # (H, B, C)

    @torch.no_grad()
    def to_model(
        self,
        head: int,
        standardizer: Standardizer,
        directions: Tensor | None,
        temperature: float,
    ) -> ClusterModel:
        """Return one head as a model; a projection is folded into its first layer."""
        rows = slice(head * self.hidden_dim, (head + 1) * self.hidden_dim)
        w1 = self.w1[rows].T.cpu()  # (P, hidden)
        if directions is not None:
            w1 = (directions.double() @ w1.double()).float()  # (D, hidden)
        tensors = {
            "w1": w1,
            "b1": self.b1[rows],
            "w2": self.w2[head],
            "b2": self.b2[head, 0],
            "w3": self.prototypes()[head],
        }
        arrays = {name: tensor.cpu().numpy().copy() for name, tensor in tensors.items()}
        arrays |= {"mean": standardizer.mean, "std": standardizer.std}
        return ClusterModel(arrays, temperature)

    def decayed(self) -> list[nn.Parameter]:
        """Return the parameters with weight decay: the weights."""
        return [self.w1, self.w2, self.direction]

    def undecayed(self) -> list[nn.Parameter]:
        """Return the parameters without weight decay: biases and magnitudes."""
        return [self.b1, self.b2, self.magnitude]


@torch.no_grad()
def update_teacher(teacher: nn.Module, student: nn.Module, momentum: float) -> None:
    """Update the moving average: teacher <- momentum * teacher + (1 - momentum) * student."""
    for average, parameter in zip(teacher.parameters(), student.parameters(), strict=True):
        average.lerp_(parameter, 1.0 - momentum)
