"""Folds batch norms into convolutions, and checks that the features stay the same."""

import copy
from collections import Counter
from itertools import chain
from typing import Any

import torch
from timm.layers.conv2d_same import Conv2dSame
from timm.layers.norm_act import BatchNormAct2d
from torch import Tensor, nn

from temi.backbones.backends import agree

# Exactly these types: subclasses may do more than one linear convolution.
_CONVOLUTIONS = (nn.Conv2d, Conv2dSame)
_NORMS = (nn.BatchNorm2d, BatchNormAct2d)


def fold_batch_norms(module: nn.Module, example: Tensor) -> nn.Module:
    """Return a module in which batch norms are folded into the convolutions before them.

    All other weights are shared with ``module``. Returns ``module`` itself if nothing can be
    folded or if the features of ``example`` would change.
    """
    pairs = _pairs(module, example)
    if not pairs:
        return module
    try:
        folded = _copy_sharing_weights(module)
        for conv, norm in pairs:
            _fold(folded, conv, norm)
        same = agree(_run(module, example), _run(folded, example))
    except Exception:  # noqa: BLE001 - a model may access its layers in any way
        return module
    return folded if same else module


def _pairs(module: nn.Module, example: Tensor) -> list[tuple[str, str]]:
    """Return the names of convolutions and of the norms that got exactly their output."""
    calls: Counter[str] = Counter()
    outputs: dict[int, tuple[str, Any]] = {}  # keeps the tensors, so that no id is reused
    pairs: list[tuple[str, str]] = []

    def watch(name: str, layer: nn.Module) -> Any:
        def seen(_layer: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            calls[name] += 1
            if type(layer) in _CONVOLUTIONS:
                outputs[id(output)] = (name, output)
            elif args and id(args[0]) in outputs and _is_fixed(layer):
                pairs.append((outputs[id(args[0])][0], name))

        return layer.register_forward_hook(seen)

    layers = [(n, m) for n, m in module.named_modules() if type(m) in _CONVOLUTIONS + _NORMS]
    hooks = [watch(name, layer) for name, layer in layers]
    try:
        _run(module, example)
    finally:
        for hook in hooks:
            hook.remove()
    return [pair for pair in pairs if calls[pair[0]] == calls[pair[1]] == 1]


def _is_fixed(norm: nn.Module) -> bool:
    return isinstance(norm, nn.BatchNorm2d) and norm.running_mean is not None


def _copy_sharing_weights(module: nn.Module) -> nn.Module:
    shared = {id(tensor): tensor for tensor in chain(module.parameters(), module.buffers())}
    return copy.deepcopy(module, shared)


def _fold(module: nn.Module, conv_name: str, norm_name: str) -> None:
    """norm(w * x + b) = (scale w) * x + (scale (b - mean) + shift)."""
    conv, norm = module.get_submodule(conv_name), module.get_submodule(norm_name)
    assert isinstance(conv, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    zero = torch.zeros_like(norm.running_mean)
    scale = torch.rsqrt(norm.running_var.double() + norm.eps)  # (out,)
    if norm.affine:
        scale = scale * norm.weight.double()
    shift = norm.bias if norm.affine else zero
    bias = zero if conv.bias is None else conv.bias
    weight = conv.weight.double() * scale[:, None, None, None]
    moved = scale * (bias.double() - norm.running_mean.double()) + shift.double()
    conv.weight = nn.Parameter(weight.to(conv.weight.dtype), requires_grad=False)
    conv.bias = nn.Parameter(moved.to(conv.weight.dtype), requires_grad=False)
    rest: nn.Module = nn.Identity()
    if isinstance(norm, BatchNormAct2d):
        rest = nn.Sequential(norm.drop, norm.act)
    parent, _, own = norm_name.rpartition(".")
    setattr(module.get_submodule(parent), own, rest)


@torch.no_grad()
def _run(module: nn.Module, example: Tensor) -> Any:
    return module(example)
