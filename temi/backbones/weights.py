"""Reading weights files, safely and with errors that say what is wrong."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from temi.errors import WeightsUnavailable

# Keys under which training scripts tuck the weights away, and prefixes that wrappers add.
_WRAPPERS = ("state_dict", "model", "model_state_dict", "state_dict_ema", "model_ema")
_PREFIXES = ("module.", "_orig_mod.")


def read_state(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors or torch file; pickled code is never run."""
    if not path.is_file():
        raise WeightsUnavailable(f"there is no weights file at {path}")
    try:
        if path.suffix == ".safetensors":
            return dict(load_file(path))
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise WeightsUnavailable(f"{path} is not a readable weights file: {reason}") from error
    return _unwrap(content, path)


def load_exactly(
    module: nn.Module, state: Mapping[str, Tensor], *, origin: str, extra: tuple[str, ...] = ()
) -> None:
    """Load ``state`` if it holds the module's tensors; only ``extra`` prefixes may be left over."""
    own = module.state_dict()
    missing = sorted(own.keys() - state.keys())
    strangers = sorted(key for key in state.keys() - own.keys() if not key.startswith(extra))
    if missing or strangers:
        raise WeightsUnavailable(
            f"{origin} does not fit the model: {_some('missing', missing)}"
            f"{_some('unexpected', strangers)}".rstrip()
        )
    for key, tensor in own.items():
        if state[key].shape != tensor.shape:
            raise WeightsUnavailable(
                f"{origin} does not fit the model: {key} has shape {tuple(state[key].shape)}, "
                f"the model wants {tuple(tensor.shape)}"
            )
    module.load_state_dict({key: state[key] for key in own})


def load_by_position(module: nn.Module, state: Mapping[str, Tensor], *, origin: str) -> None:
    """Load tensors that come in the module's order under other names, checking every shape."""
    own = module.state_dict()
    if len(own) != len(state):
        raise WeightsUnavailable(f"{origin} has {len(state)} tensors, the model has {len(own)}")
    matched = {}
    for (key, tensor), (other, given) in zip(own.items(), state.items(), strict=True):
        if tensor.shape != given.shape or key.rpartition(".")[2] != other.rpartition(".")[2]:
            raise WeightsUnavailable(
                f"{origin} does not fit the model: {other} {tuple(given.shape)} stands where "
                f"{key} {tuple(tensor.shape)} should"
            )
        matched[key] = given
    module.load_state_dict(matched)


def _unwrap(content: Any, path: Path) -> dict[str, Tensor]:
    for key in _WRAPPERS:
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
            break
    if not isinstance(content, dict) or not content:
        raise WeightsUnavailable(f"{path} holds no weights")
    tensors = {str(k): v for k, v in content.items() if isinstance(v, Tensor)}
    for prefix in _PREFIXES:
        if tensors and all(key.startswith(prefix) for key in tensors):
            tensors = {key.removeprefix(prefix): value for key, value in tensors.items()}
    if not tensors:
        raise WeightsUnavailable(f"{path} holds no weights")
    return tensors


def _some(what: str, keys: list[str]) -> str:
    if not keys:
        return ""
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    return f"{what} {', '.join(keys[:3])}{more}; "
