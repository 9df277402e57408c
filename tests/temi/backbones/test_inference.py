"""Folding batch norms does not change the features, and is skipped if it would."""

import pytest
import timm
import torch
from timm.layers.norm_act import BatchNormAct2d
from timm.layers.std_conv import StdConv2d
from torch import Tensor, nn

from temi.backbones.inference import fold_batch_norms
from temi.backbones.load import load_backbone


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def shaken(module: nn.Module) -> nn.Module:
    """Set statistics and scales as if the network were trained."""
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d) and layer.running_mean is not None:
            assert layer.running_var is not None
            nn.init.normal_(layer.running_mean)
            nn.init.uniform_(layer.running_var, 0.5, 2)
            if layer.affine:
                nn.init.uniform_(layer.weight, 0.5, 2)
                nn.init.normal_(layer.bias)
    return module.eval()


def norms(module: nn.Module) -> int:
    return sum(isinstance(layer, nn.BatchNorm2d) for layer in module.modules())


def image_batch() -> Tensor:
    return torch.randn(2, 3, 16, 16)


class Pooled(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, batch: Tensor) -> Tensor:
        found = self.layers(batch)
        assert isinstance(found, Tensor)
        return found.mean(dim=(2, 3))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("kind", [nn.BatchNorm2d, BatchNormAct2d])
def test_a_norm_is_folded_into_the_convolution(
    kind: type[nn.BatchNorm2d], affine: bool, bias: bool
) -> None:
    module = shaken(Pooled(nn.Conv2d(3, 6, 3, groups=3, bias=bias), kind(6, affine=affine)))
    batch = image_batch()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}

    folded = fold_batch_norms(module, batch)

    assert norms(folded) == 0
    torch.testing.assert_close(folded(batch), module(batch), rtol=1e-4, atol=1e-5)
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name])  # the original is as it was


@pytest.mark.parametrize("name", ["test_resnet", "test_efficientnet", "test_byobnet"])
def test_models_of_timm(name: str) -> None:
    module = shaken(timm.create_model(name, pretrained=False, num_classes=0))
    batch = torch.randn(2, 3, 64, 64)

    folded = fold_batch_norms(module, batch)

    assert norms(folded) < norms(module)
    with torch.no_grad():
        expected = module(batch)
        torch.testing.assert_close(folded(batch), expected, rtol=1e-3, atol=1e-4)
    kept = {id(tensor) for tensor in module.parameters()}
    assert any(id(tensor) in kept for tensor in folded.parameters()) or norms(folded) == 0


class UsedTwice(Pooled):
    """The output of the convolution is also added at the end."""

    def forward(self, batch: Tensor) -> Tensor:
        found = self.layers[0](batch)
        return torch.cat([self.layers[1](found), found], dim=1).mean(dim=(2, 3))


class Repeated(Pooled):
    def forward(self, batch: Tensor) -> Tensor:
        once = self.layers[1](self.layers[0](batch))
        return (once + self.layers[1](once)).mean(dim=(2, 3))  # type: ignore[no-any-return]


class LooksInside(Pooled):
    def forward(self, batch: Tensor) -> Tensor:
        return super().forward(batch) * self.layers[1].weight.sum()  # type: ignore[operator]


@pytest.mark.parametrize(
    "module",
    [
        UsedTwice(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)),
        Repeated(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)),
        LooksInside(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)),
        Pooled(StdConv2d(3, 3, 1), nn.BatchNorm2d(3)),
        Pooled(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3, track_running_stats=False)),
        Pooled(nn.Conv2d(3, 3, 1), nn.ReLU(), nn.BatchNorm2d(3)),
        Pooled(nn.Conv2d(3, 3, 1)),
    ],
    ids=["used twice", "repeated", "looks inside", "own weights", "no statistics", "apart", "none"],
)
def test_a_model_that_cannot_be_folded_is_returned_unchanged(module: nn.Module) -> None:
    assert fold_batch_norms(shaken(module), image_batch()) is module


def test_a_model_without_batch_norms_is_returned_unchanged() -> None:
    module = timm.create_model("test_vit", pretrained=False, num_classes=0).eval()
    assert fold_batch_norms(module, torch.randn(1, 3, 160, 160)) is module


def test_the_embedded_backbone_keeps_its_trainable_module_and_hash() -> None:
    backbone = load_backbone("efficientnet_lite0", device="cpu")
    batch = torch.randn(2, 3, 160, 160)

    assert norms(backbone.module) == 49
    assert norms(backbone.fast) == 0
    torch.testing.assert_close(
        backbone.forward(batch), backbone.module(batch), rtol=1e-3, atol=1e-4
    )
