"""The classifier that a backbone was trained with, by which clusters are named."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy

_HEADER_SIZE = 8  # bytes of the length of the header, which holds the names


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """Logits of ImageNet's classes from the features of a backbone: features @ weight.T + bias."""

    weight: npt.NDArray[np.float32]  # (1000, D)
    bias: npt.NDArray[np.float32]  # (1000,)
    names: list[str]  # of the classes, with synonyms after commas

    def to_bytes(self) -> bytes:
        """Return a safetensors file with the names in its metadata."""
        tensors = {"weight": self.weight, "bias": self.bias}
        return safetensors.numpy.save(tensors, {"names": json.dumps(self.names)})

    @classmethod
    def from_bytes(cls, data: bytes) -> "Classifier":
        size = int.from_bytes(data[:_HEADER_SIZE], "little")
        header: dict[str, Any] = json.loads(data[_HEADER_SIZE : _HEADER_SIZE + size])
        tensors = safetensors.numpy.load(data)
        names = json.loads(header["__metadata__"]["names"])
        return cls(weight=tensors["weight"], bias=tensors["bias"], names=names)
