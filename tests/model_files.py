"""Small model versions: a manifest with all fields, and a head of random weights."""

import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from app.core.models.files import NOVELTY_FILE
from app.core.storage import Storage
from temi.config import TrainConfig
from temi.novelty import fit_novelty

DIM = 1280  # of efficientnet_lite0
_WEIGHTS = "2b7c4bdcc21e7be985da0ef6c6a673dca2989b6ac7b2914be3518d3c0791abfb"  # its installed ones
_HIDDEN, _BOTTLENECK = 4, 3


def small_manifest(n_clusters: int, **changes: Any) -> dict[str, Any]:
    config = TrainConfig(n_clusters=n_clusters, steps=100)
    return {
        "format": 1,
        "backbone": "efficientnet_lite0",
        "weights_sha256": _WEIGHTS,
        "precision": "float32",
        "preprocessing": {
            "size": 160,
            "resize": 160,
            "interpolation": "bicubic",
            "mean": [127.0] * 3,
            "std": [128.0] * 3,
        },
        "feature_dim": DIM,
        "n_clusters": n_clusters,
        "temperature": 0.1,
        "clusters": [{"cluster_id": i, "label": f"cluster {i}"} for i in range(n_clusters)],
        "config": config.as_dict(),
        "seed": config.seed,
        "metrics": {"temi": None, "kmeans": None},
        "dataset": {"id": "ds_elsewhere", "fingerprint": "ab" * 32},
        "packages": {"torch": "2"},
        **changes,
    }


def small_head(n_clusters: int, seed: int = 0) -> dict[str, npt.NDArray[np.float32]]:
    random = np.random.default_rng(seed)
    shapes = {
        "mean": (DIM,),
        "std": (DIM,),
        "w1": (DIM, _HIDDEN),
        "b1": (_HIDDEN,),
        "w2": (_HIDDEN, _BOTTLENECK),
        "b2": (_BOTTLENECK,),
        "w3": (_BOTTLENECK, n_clusters),
    }
    tensors = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return tensors | {"std": np.ones(DIM, np.float32)}


def small_files(manifest: dict[str, Any], seed: int = 0) -> dict[str, bytes]:
    head = small_head(manifest["n_clusters"], seed)
    return {
        "manifest.json": json.dumps(manifest, indent=2, sort_keys=True).encode(),
        "model.safetensors": safetensors.numpy.save(head),
    }


def novelty_file(seed: int = 0) -> dict[str, bytes]:
    """The detector of a version that was trained on random features near (100, 0, 0, ...)."""
    features = np.random.default_rng(seed).normal(size=(50, DIM))
    features[:, 0] += 100
    return {NOVELTY_FILE: safetensors.numpy.save(fit_novelty(features).tensors())}


def write_files(storage: Storage, folder: str, files: dict[str, bytes]) -> dict[str, str]:
    """Writes the files; returns their hashes for the registry."""
    for name, data in files.items():
        storage.write(f"{folder}/{name}", data)
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
