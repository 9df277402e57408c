"""Fine-tuning of backbone and trained heads together, on the images.

Fine-tuning starts from trained heads: together with randomly initialized heads, the backbone
gets worse.

Names are loaded on first use, so that settings can be validated without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from temi.finetune.config import FinetuneConfig
    from temi.finetune.network import backbone_tensors, with_weights
    from temi.finetune.tuner import Finetuner, FinetuneReport

_HOME = {
    "FinetuneConfig": "config",
    "FinetuneReport": "tuner",
    "Finetuner": "tuner",
    "backbone_tensors": "network",
    "with_weights": "network",
}

__all__ = ["FinetuneConfig", "FinetuneReport", "Finetuner", "backbone_tensors", "with_weights"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'temi.finetune' has no attribute {name!r}")
    value = getattr(import_module(f"temi.finetune.{_HOME[name]}"), name)
    globals()[name] = value
    return value
