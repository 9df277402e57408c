"""Reads the classifier of a backbone's weights: the last layer, which features do not need."""

from importlib import import_module
from pathlib import Path
from typing import Any

import timm
from torch import Tensor, nn

from temi.backbones.catalog import BackboneName
from temi.backbones.checkpoints import backbone_state
from temi.backbones.weights import read_content, read_state
from temi.naming.classifier import Classifier
from temi.naming.imagenet import CLASSES


def load_classifier(parsed: BackboneName, file: Path | None) -> Classifier | None:
    """Return the classifier if the weights have one of ImageNet's 1,000 classes.

    Of weights that timm downloads it is not read: they would have to be downloaded again.
    """
    found = _tensors(parsed, file)
    if found is None or found[0].ndim != 2 or len(found[0]) != CLASSES:
        return None
    weight, bias = (tensor.detach().float().numpy().copy() for tensor in found)
    return Classifier(weight=weight, bias=bias, names=class_names())


def class_names() -> list[str]:
    info: Any = import_module("timm.data").ImageNetInfo()
    return [str(info.index_to_description(number)) for number in range(CLASSES)]


def _tensors(parsed: BackboneName, file: Path | None) -> tuple[Tensor, Tensor] | None:
    if parsed.embedded is not None:
        model_file = getattr(import_module(parsed.embedded.package), parsed.embedded.file_class)
        state = read_state(Path(model_file.get_model_file_path()))
        weight, bias = list(state.values())[-2:]  # under other names than timm's, but the last
        return weight, bias
    if parsed.source != "timm" or file is None or (parsed.named and parsed.named.layout != "timm"):
        return None
    module: nn.Module = timm.create_model(parsed.model, pretrained=False)
    name: Any = getattr(module, "pretrained_cfg", {}).get("classifier")
    if not isinstance(name, str):
        return None
    state = backbone_state(read_content(file), "timm", origin=str(file))
    if f"{name}.weight" not in state or f"{name}.bias" not in state:
        return None
    return state[f"{name}.weight"], state[f"{name}.bias"]
