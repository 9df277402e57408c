"""Opens backbones to compute features. On a CPU, torch is loaded only to convert a new one."""

from typing import TYPE_CHECKING

from app.core.platform.hardware import computes_on_gpu
from app.core.platform.settings import Settings

if TYPE_CHECKING:
    from temi.backbones.converted import ConvertedBackbones
    from temi.backbones.extractor import FeatureExtractor
    from temi.config import Precision


def open_extractor(name: str, precision: "Precision", settings: Settings) -> "FeatureExtractor":
    if uses_converted(settings, precision):
        from temi.backbones.opening import open_backbone

        return open_backbone(
            name, weights_dir=settings.weights_dir, converted=converted_backbones(settings)
        )
    from temi.backbones.load import load_backbone

    return load_backbone(
        name, weights_dir=settings.weights_dir, device=settings.device, precision=precision
    )


def uses_converted(settings: Settings, precision: "Precision") -> bool:
    """Whether features are computed by ONNX Runtime, if it can run the backbone."""
    return precision == "float32" and not computes_on_gpu(settings)


def converted_backbones(settings: Settings) -> "ConvertedBackbones":
    from temi.backbones.converted import ConvertedBackbones

    return ConvertedBackbones(settings.converted_dir)
