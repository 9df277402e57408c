"""Loads a backbone by its name: the embedded one, or one of timm or open_clip."""

import logging
from functools import partial
from pathlib import Path
from typing import Any

import timm
from timm.data.config import resolve_model_data_config
from torch import Tensor, nn

from temi.backbones.auto import AUTO, choose_backbone
from temi.backbones.base import Backbone, hash_tensors
from temi.backbones.catalog import BackboneName, check_backbone, parse_name
from temi.backbones.checkpoints import backbone_state
from temi.backbones.classifier import load_classifier
from temi.backbones.embedded import EmbeddedBackbone
from temi.backbones.preprocessing import INTERPOLATIONS, Preprocessing
from temi.backbones.weights import load_by_position, load_exactly, read_content, read_state
from temi.config import Precision
from temi.device import resolve_device
from temi.errors import TemiError, WeightsUnavailable

_log = logging.getLogger(__name__)

# Photos need 224 pixels: neighbor precision is 0.72 instead of 0.69 on household waste, 0.58
# instead of 0.53 on groceries. Drawings show no difference.
EMBEDDED_SIZE = 224

# How the self-supervised projects evaluate their models.
IMAGENET_CROP = Preprocessing(
    size=224,
    resize=256,
    interpolation="bicubic",
    mean=(0.485 * 255, 0.456 * 255, 0.406 * 255),
    std=(0.229 * 255, 0.224 * 255, 0.225 * 255),
)


def load_backbone(
    name: str,
    *,
    weights_dir: Path | None = None,
    device: str = "auto",
    precision: Precision = "float32",
) -> Backbone:
    """Load a backbone; raises UnknownBackbone or WeightsUnavailable (see ``catalog``).

    ``auto`` is the best one whose weights are on this machine (see ``auto``).
    """
    target = resolve_device(device)
    if name == AUTO:
        choice = choose_backbone(weights_dir, has_gpu=target.type != "cpu")
        _log.info(choice.reason)
        name = choice.name
    check_backbone(name, weights_dir)
    parsed = parse_name(name)
    file = parsed.local_file(weights_dir)
    if parsed.embedded is not None:
        module, preprocessing = _embedded(parsed.embedded)
    elif parsed.source == "timm":
        module, preprocessing = _timm(parsed, file, weights_dir)
    else:
        module, preprocessing = _open_clip(parsed, file, weights_dir)
    named = parsed.named
    backbone = Backbone(
        name=name,
        module=module,
        preprocessing=IMAGENET_CROP if named and named.imagenet_crop else preprocessing,
        weights_hash=hash_tensors(module.state_dict()),
        device=target,
        precision=precision,
        load_classifier=partial(load_classifier, parsed, file),
    )
    if named is not None and backbone.dim != named.dim:
        raise TemiError(f"{name} has {backbone.dim} features per image, expected {named.dim}")
    return backbone


def _new_timm(model: str, **options: Any) -> Any:
    """Create a timm model; the type is Any, because no common type declares timm's methods."""
    return timm.create_model(model, **options)


def _data_config(module: Any) -> dict[str, Any]:
    resolve: Any = resolve_model_data_config
    return dict(resolve(module))


_OTHER_SIZES = {"efficientnet_lite2": 260}  # pixels of its training


def _embedded(embedded: EmbeddedBackbone) -> tuple[nn.Module, Preprocessing]:
    path = embedded.weights_file
    module = _new_timm(embedded.model, pretrained=False)
    load_by_position(module, read_state(path), origin=path.name)
    module.reset_classifier(0)  # 1280 pooled features instead of ImageNet's classes
    size = _OTHER_SIZES.get(embedded.name, EMBEDDED_SIZE)
    preprocessing = Preprocessing(
        size=size,
        resize=size,
        interpolation="bicubic",
        mean=(127.0, 127.0, 127.0),
        std=(128.0, 128.0, 128.0),
    )
    return module, preprocessing


def _timm(
    parsed: BackboneName, file: Path | None, weights_dir: Path | None
) -> tuple[nn.Module, Preprocessing]:
    named = parsed.named
    options = {"num_classes": 0, **(named.options if named else {})}
    if file is not None:
        module = _new_timm(parsed.model, pretrained=False, **options)
        classifier = module.pretrained_cfg.get("classifier") or ()
        names = (classifier,) if isinstance(classifier, str) else tuple(classifier)
        layout = named.layout if named else "timm"
        state = backbone_state(
            read_content(file),
            layout,
            origin=str(file),
            heads=tuple(f"{name}." for name in names) if layout == "timm" else (),
        )
        load_exactly(module, state, origin=str(file))
    else:
        try:
            module = _new_timm(parsed.model, pretrained=True, **options)
        except (OSError, RuntimeError) as error:
            raise _not_downloaded(parsed, weights_dir) from error
    config = _data_config(module)
    return module, _preprocessing(
        size=config["input_size"][-1],
        crop=config["crop_pct"],
        interpolation=config["interpolation"],
        mean=config["mean"],
        std=config["std"],
    )


def open_clip_options(parsed: BackboneName) -> dict[str, Any]:
    """Return the GELU variant and the color normalization of the pretrained tag.

    open_clip ignores both if the weights come from a file, and the GELU if it downloads them.
    """
    import open_clip

    tag: dict[str, Any] = open_clip.get_pretrained_cfg(parsed.model, parsed.pretrained or "") or {}
    return {"force_quick_gelu": bool(tag.get("quick_gelu")), "force_preprocess_cfg": tag}


class ImageTower(nn.Module):
    """The image encoder of a CLIP model without the text encoder, which can then be freed."""

    def __init__(self, visual: nn.Module) -> None:
        super().__init__()
        self.visual = visual

    def forward(self, batch: Tensor) -> Tensor:
        features = self.visual(batch)
        assert isinstance(features, Tensor)
        return features


def image_tower(model: Any) -> ImageTower:
    """Return the image encoder of a model of open_clip."""
    return ImageTower(model.visual)


def _open_clip(
    parsed: BackboneName, file: Path | None, weights_dir: Path | None
) -> tuple[nn.Module, Preprocessing]:
    import open_clip

    options = open_clip_options(parsed)
    if file is not None:
        model = open_clip.create_model(parsed.model, pretrained_text=False, **options)
        text = tuple(key for key in model.state_dict() if not key.startswith("visual."))
        content = read_content(file)
        state = backbone_state(content, "open_clip", origin=str(file), beside=text)
        load_exactly(model.visual, state, origin=str(file))
    else:
        try:
            model = open_clip.create_model(parsed.model, pretrained=parsed.pretrained, **options)
        except (OSError, RuntimeError) as error:
            raise _not_downloaded(parsed, weights_dir) from error
    config = open_clip.get_model_preprocess_cfg(model)
    size = config["size"]
    return image_tower(model), _preprocessing(
        size=size if isinstance(size, int) else size[0],
        crop=1.0,
        interpolation=config.get("interpolation", "bicubic"),
        mean=config["mean"],
        std=config["std"],
    )


def _preprocessing(
    *, size: int, crop: float, interpolation: str, mean: Any, std: Any
) -> Preprocessing:
    """Convert the settings of the libraries, whose mean and std are for pixels in 0..1."""
    return Preprocessing(
        size=int(size),
        resize=round(size / crop),
        interpolation=interpolation if interpolation in INTERPOLATIONS else "bicubic",
        mean=(mean[0] * 255, mean[1] * 255, mean[2] * 255),
        std=(std[0] * 255, std[1] * 255, std[2] * 255),
    )


def _not_downloaded(parsed: BackboneName, weights_dir: Path | None) -> WeightsUnavailable:
    return WeightsUnavailable(
        f"the weights of {parsed.file_stem} could not be downloaded: {parsed.advice(weights_dir)}"
    )
