"""Reads weights files without executing pickled code."""

import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from temi.backbones.checkpoints import backbone_state, some
from temi.errors import WeightsUnavailable


class _Ignored:
    """Placeholder for other objects in a training checkpoint; does nothing."""

    def __new__(cls, *_: object) -> "_Ignored":
        return super().__new__(cls)

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, _: object) -> None: ...


# Public training checkpoints contain the command line and the learning rates as these types. The
# names are allowed, but resolve to the placeholder.
_PLACEHOLDERS: list[Any] = [
    (_Ignored, name)
    for name in (
        "argparse.Namespace",
        "numpy.dtype",
        "numpy.core.multiarray.scalar",
        "numpy._core.multiarray.scalar",
    )
]
_REFUSED = re.compile(r"GLOBAL (\S+)")
_UNREADABLE = (
    SafetensorError,
    pickle.UnpicklingError,
    RuntimeError,
    EOFError,
    OSError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    zipfile.BadZipFile,
)


def read_content(path: Path) -> dict[str, Any]:
    """Read a safetensors or torch file; pickled code is never executed."""
    if not path.is_file():
        raise WeightsUnavailable(f"there is no weights file at {path}")
    try:
        if _is_torchscript(path):
            raise WeightsUnavailable(f"{path} is a TorchScript program: save its state dict")
        if path.suffix == ".safetensors":
            return dict(load_file(path))
        with torch.serialization.safe_globals(_PLACEHOLDERS):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:
        raise WeightsUnavailable(
            f"{path} is not a readable weights file: {_reason(error)}"
        ) from error
    if not isinstance(content, dict) or not content:
        raise WeightsUnavailable(f"{path} contains no weights")
    return content


def read_state(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a file that contains only one model."""
    return backbone_state(read_content(path), "timm", origin=str(path))


def load_exactly(module: nn.Module, state: Mapping[str, Tensor], *, origin: str) -> None:
    """Load ``state`` if it has exactly the module's tensors."""
    own = module.state_dict()
    missing = sorted(own.keys() - state.keys())
    unexpected = sorted(state.keys() - own.keys())
    if missing or unexpected:
        wrong = {"missing": missing, "unexpected": unexpected}
        reasons = "; ".join(f"{what} {some(keys)}" for what, keys in wrong.items() if keys)
        raise WeightsUnavailable(f"{origin} does not fit the model: {reasons}")
    for key, tensor in own.items():
        if state[key].shape != tensor.shape:
            raise WeightsUnavailable(
                f"{origin} does not fit the model: {key} has shape {tuple(state[key].shape)}, "
                f"the model expects {tuple(tensor.shape)}"
            )
    module.load_state_dict(dict(state))


def load_by_position(module: nn.Module, state: Mapping[str, Tensor], *, origin: str) -> None:
    """Load tensors in the module's order under other names; checks every shape."""
    own = module.state_dict()
    if len(own) != len(state):
        raise WeightsUnavailable(f"{origin} has {len(state)} tensors, the model has {len(own)}")
    matched = {}
    for (key, tensor), (other, given) in zip(own.items(), state.items(), strict=True):
        if tensor.shape != given.shape or key.rpartition(".")[2] != other.rpartition(".")[2]:
            raise WeightsUnavailable(
                f"{origin} does not fit the model: found {other} {tuple(given.shape)}, "
                f"expected {key} {tuple(tensor.shape)}"
            )
        matched[key] = given
    module.load_state_dict(matched)


def _is_torchscript(path: Path) -> bool:
    """Detect TorchScript programs, such as OpenAI's CLIP files; torch would warn and then fail."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def _reason(error: Exception) -> str:
    """Shorten torch's error message, which recommends loading the file unsafely."""
    refused = _REFUSED.search(str(error))
    if refused:
        return f"it contains a Python object, {refused.group(1)}"
    if isinstance(error, pickle.UnpicklingError):
        return "it is damaged, or contains Python objects"
    return str(error).splitlines()[0] if str(error) else type(error).__name__
