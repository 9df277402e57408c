"""TEMI: clustering of images on top of a frozen backbone, arrays in and arrays out.

Names are loaded on first use, so that ``import temi`` and ``temi.catalog`` stay free of torch.
The k-means baseline is ``temi.kmeans.kmeans``: its module has the same name. What can be
measured about a clustering is in ``temi.analysis``, fine-tuning in ``temi.finetune``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from temi.backbones import Backbone, load_backbone, resolve_device
    from temi.catalog import DEFAULT_BACKBONE, BackboneInfo, check_backbone, list_backbones
    from temi.config import TrainConfig
    from temi.embed import embed_files, embed_images
    from temi.errors import InvalidConfig, TemiError, UnknownBackbone, WeightsUnavailable
    from temi.estimator import TEMI
    from temi.metrics import ClusteringMetrics, evaluate
    from temi.model import ClusterModel
    from temi.named_backbones import NAMED_BACKBONES, NamedBackbone
    from temi.neighbors import Neighbors, mine_neighbors
    from temi.train import Trainer, TrainReport

_HOME = {
    "Backbone": "backbones",
    "BackboneInfo": "catalog",
    "ClusterModel": "model",
    "ClusteringMetrics": "metrics",
    "DEFAULT_BACKBONE": "catalog",
    "InvalidConfig": "errors",
    "NAMED_BACKBONES": "named_backbones",
    "NamedBackbone": "named_backbones",
    "Neighbors": "neighbors",
    "TEMI": "estimator",
    "TemiError": "errors",
    "TrainConfig": "config",
    "TrainReport": "train",
    "Trainer": "train",
    "UnknownBackbone": "errors",
    "WeightsUnavailable": "errors",
    "check_backbone": "catalog",
    "embed_files": "embed",
    "embed_images": "embed",
    "evaluate": "metrics",
    "list_backbones": "catalog",
    "load_backbone": "backbones",
    "mine_neighbors": "neighbors",
    "resolve_device": "backbones",
}

__all__ = [
    "DEFAULT_BACKBONE",
    "NAMED_BACKBONES",
    "TEMI",
    "Backbone",
    "BackboneInfo",
    "ClusterModel",
    "ClusteringMetrics",
    "InvalidConfig",
    "NamedBackbone",
    "Neighbors",
    "TemiError",
    "TrainConfig",
    "TrainReport",
    "Trainer",
    "UnknownBackbone",
    "WeightsUnavailable",
    "check_backbone",
    "embed_files",
    "embed_images",
    "evaluate",
    "list_backbones",
    "load_backbone",
    "mine_neighbors",
    "resolve_device",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'temi' has no attribute {name!r}")
    value = getattr(import_module(f"temi.{_HOME[name]}"), name)
    globals()[name] = value
    return value
