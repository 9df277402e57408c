"""TEMI: clustering of images on top of a frozen backbone, arrays in and arrays out.

Names are loaded on first use, so that ``import temi`` stays free of torch. The k-means baseline is
``temi.analysis.kmeans``; what can be measured about a clustering is in ``temi.analysis``,
fine-tuning in ``temi.finetune``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from temi.analysis.metrics import ClusteringMetrics, evaluate
    from temi.backbones.auto import BackboneChoice, choose_backbone
    from temi.backbones.base import Backbone
    from temi.backbones.catalog import (
        DEFAULT_BACKBONE,
        BackboneInfo,
        check_backbone,
        list_backbones,
    )
    from temi.backbones.embedding import embed_files, embed_images
    from temi.backbones.fetching import FetchedWeights, fetch_weights
    from temi.backbones.load import load_backbone
    from temi.backbones.named import NAMED_BACKBONES, NamedBackbone
    from temi.config import TrainConfig
    from temi.device import resolve_device
    from temi.errors import InvalidConfig, TemiError, UnknownBackbone, WeightsUnavailable
    from temi.estimator import TEMI
    from temi.model import ClusterModel
    from temi.neighbors.search import Neighbors, mine_neighbors
    from temi.training.trainer import Trainer, TrainReport

_HOME = {
    "Backbone": "backbones.base",
    "BackboneChoice": "backbones.auto",
    "BackboneInfo": "backbones.catalog",
    "ClusterModel": "model",
    "ClusteringMetrics": "analysis.metrics",
    "DEFAULT_BACKBONE": "backbones.catalog",
    "FetchedWeights": "backbones.fetching",
    "InvalidConfig": "errors",
    "NAMED_BACKBONES": "backbones.named",
    "NamedBackbone": "backbones.named",
    "Neighbors": "neighbors.search",
    "TEMI": "estimator",
    "TemiError": "errors",
    "TrainConfig": "config",
    "TrainReport": "training.trainer",
    "Trainer": "training.trainer",
    "UnknownBackbone": "errors",
    "WeightsUnavailable": "errors",
    "check_backbone": "backbones.catalog",
    "choose_backbone": "backbones.auto",
    "embed_files": "backbones.embedding",
    "embed_images": "backbones.embedding",
    "evaluate": "analysis.metrics",
    "fetch_weights": "backbones.fetching",
    "list_backbones": "backbones.catalog",
    "load_backbone": "backbones.load",
    "mine_neighbors": "neighbors.search",
    "resolve_device": "device",
}

__all__ = [
    "DEFAULT_BACKBONE",
    "NAMED_BACKBONES",
    "TEMI",
    "Backbone",
    "BackboneChoice",
    "BackboneInfo",
    "ClusterModel",
    "ClusteringMetrics",
    "FetchedWeights",
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
    "choose_backbone",
    "embed_files",
    "embed_images",
    "evaluate",
    "fetch_weights",
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
