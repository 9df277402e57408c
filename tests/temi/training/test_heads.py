import copy

import pytest
import torch
from torch import nn

from temi.training.heads import INIT_STD, Heads, update_teacher


def make(n_heads: int = 3, seed: int = 0) -> Heads:
    return Heads(
        n_heads=n_heads,
        dim=7,
        hidden_dim=16,
        bottleneck_dim=8,
        n_clusters=5,
        generator=torch.Generator().manual_seed(seed),
    )


def single_head(heads: Heads, index: int) -> nn.Sequential:
    """Head ``index`` built from torch's own layers."""
    first, second = nn.Linear(7, 16), nn.Linear(16, 8)
    last = nn.utils.parametrizations.weight_norm(nn.Linear(8, 5, bias=False))
    rows = slice(index * 16, (index + 1) * 16)
    with torch.no_grad():
        first.weight.copy_(heads.w1[rows])
        first.bias.copy_(heads.b1[rows])
        second.weight.copy_(heads.w2[index].T)
        second.bias.copy_(heads.b2[index, 0])
        weight_norm = last.parametrizations["weight"]
        assert isinstance(weight_norm, nn.Module)
        magnitude, direction = weight_norm.parameters()
        magnitude.copy_(heads.magnitude[index].T)
        direction.copy_(heads.direction[index].T)
    return nn.Sequential(first, nn.GELU(), second, _Unit(), last)


class _Unit(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.div(x, x.square().sum(dim=-1, keepdim=True).sqrt())


def scrambled() -> Heads:
    heads = make()
    with torch.no_grad():
        for parameter in heads.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(parameter.numel()))
    return heads


def test_stacked_heads_equal_single_heads_in_a_loop() -> None:
    heads = scrambled()
    x = torch.randn(11, 7, generator=torch.Generator().manual_seed(1))

    stacked = heads(x)

    assert stacked.shape == (3, 11, 5)
    for index in range(3):
        torch.testing.assert_close(stacked[index], single_head(heads, index)(x))


def test_gradients_equal_those_of_single_heads() -> None:
    heads = scrambled()
    x = torch.randn(4, 7, generator=torch.Generator().manual_seed(1))
    (grad,) = torch.autograd.grad(heads(x).square().sum(), heads.w1)

    single = single_head(heads, 1)
    weight = single.get_submodule("0").get_parameter("weight")
    (expected,) = torch.autograd.grad(single(x).square().sum(), weight)

    torch.testing.assert_close(grad[16:32], expected)


def test_a_single_head_keeps_the_axis_of_heads() -> None:
    assert make(n_heads=1)(torch.zeros(2, 7)).shape == (1, 2, 5)


def test_prototypes_have_the_magnitude_as_norm() -> None:
    heads = scrambled()

    norms = heads.prototypes().norm(dim=1)

    torch.testing.assert_close(norms, heads.magnitude[:, 0].abs())


def test_logits_do_not_depend_on_the_length_of_the_bottleneck() -> None:
    heads = make()
    x = torch.randn(4, 7, generator=torch.Generator().manual_seed(1))
    before = heads(x)
    with torch.no_grad():
        heads.w2.mul_(10)
        heads.b2.mul_(10)

    torch.testing.assert_close(heads(x), before)


def test_zero_features_give_finite_logits_and_gradients() -> None:
    heads = make()

    logits = heads(torch.zeros(3, 7))
    grads = torch.autograd.grad(logits.sum(), list(heads.parameters()))

    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(grad).all() for grad in grads)


def test_initial_weights() -> None:
    heads = Heads(n_heads=2, dim=64, hidden_dim=64, bottleneck_dim=64, n_clusters=4)

    assert heads.w1.std().item() == pytest.approx(INIT_STD, rel=0.1)
    assert heads.b1.abs().sum() == 0
    assert heads.b2.abs().sum() == 0


def test_same_seed_same_heads() -> None:
    for mine, theirs in zip(make(seed=3).parameters(), make(seed=3).parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_teacher_follows_the_student() -> None:
    teacher, student = scrambled(), make()
    before = copy.deepcopy(teacher)

    update_teacher(teacher, student, 0.9)

    for now, was, target in zip(
        teacher.parameters(), before.parameters(), student.parameters(), strict=True
    ):
        torch.testing.assert_close(now, 0.9 * was + 0.1 * target)


def test_every_parameter_is_either_decayed_or_not() -> None:
    heads = make()

    groups = [id(p) for p in heads.decayed() + heads.undecayed()]

    assert sorted(groups) == sorted(id(p) for p in heads.parameters())
