"""Features as text, so that every database and every backup can hold them."""

import base64
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_TYPE = "<f4"


def encode_features(vector: npt.NDArray[np.floating]) -> str:
    return base64.b64encode(np.ascontiguousarray(vector, dtype=_TYPE).tobytes()).decode()


def decode_features(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """One row of each text: (N, D)."""
    rows = [np.frombuffer(base64.b64decode(text), dtype=_TYPE) for text in texts]
    return np.stack(rows).astype(np.float32)
