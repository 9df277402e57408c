"""The tensor names and other content of public checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from temi.backbones.named import Layout
from temi.errors import WeightsUnavailable


@dataclass(frozen=True, kw_only=True)
class CheckpointLayout:
    """Where a file has the backbone's tensors, and which others it may contain."""

    places: tuple[tuple[str | None, str], ...]  # (entry of the file, prefix in it), best first
    beside: tuple[str, ...] = ()  # prefixes of tensors beside the backbone, if it has a prefix
    heads: tuple[str, ...] = ()  # prefixes of tensors of the backbone that features do not need


_OPENAI_SIZES = ("input_resolution", "context_length", "vocab_size")  # in OpenAI's files

# If a checkpoint has a moving average of the network beside the network itself, the average comes
# first: DINO and MSN publish it, and the paper's authors used that of MoCo v3.
LAYOUTS: Mapping[Layout, CheckpointLayout] = {
    "dino": CheckpointLayout(
        places=(("teacher", "backbone."), ("student", "backbone."), (None, "")),
        beside=("head.",),
        heads=("fc.",),  # ResNet-50's classifier, which DINO does not train
    ),
    "msn": CheckpointLayout(
        places=(("target_encoder", ""), ("encoder", ""), (None, "")),
        heads=("fc.", "pred."),
    ),
    "mocov3": CheckpointLayout(
        places=(
            ("state_dict", "momentum_encoder."),
            ("state_dict", "base_encoder."),
            ("state_dict", ""),  # the files with a linear classifier on top
            (None, ""),
        ),
        beside=("base_encoder.", "momentum_encoder.", "predictor."),
        heads=("head.",),
    ),
    "mae": CheckpointLayout(
        places=(("model", ""), (None, "")),
        heads=("mask_token", "decoder_"),
    ),
    "dinov2": CheckpointLayout(places=((None, ""),), heads=("mask_token",)),
    "timm": CheckpointLayout(
        places=(
            ("state_dict", ""),
            ("model", ""),
            ("model_state_dict", ""),
            ("state_dict_ema", ""),
            ("model_ema", ""),
            (None, ""),
        )
    ),
    "open_clip": CheckpointLayout(
        places=(("state_dict", "visual."), (None, "visual.")),
        beside=_OPENAI_SIZES,
    ),
    "open_clip_model": CheckpointLayout(  # with the text encoder
        places=(("state_dict", ""), (None, "")), heads=_OPENAI_SIZES
    ),
}
_WRAPPERS = ("module.", "_orig_mod.")  # added by parallel training and by torch.compile


def backbone_state(
    content: Mapping[str, Any],
    layout: Layout,
    *,
    origin: str,
    beside: tuple[str, ...] = (),
    heads: tuple[str, ...] = (),
) -> dict[str, Tensor]:
    """Return the backbone's tensors under the names that its module uses.

    ``beside`` and ``heads`` are allowed prefixes in addition to those of the layout.
    """
    expected = LAYOUTS[layout]
    for entry, prefix in expected.places:
        tensors = _tensors(content if entry is None else content.get(entry))
        if not any(key.startswith(prefix) for key in tensors):
            continue
        known = (prefix, *expected.beside, *beside)
        unexpected = [key for key in tensors if not key.startswith(known)]
        if unexpected:
            raise WeightsUnavailable(
                f"{origin} does not fit the {layout} layout: unexpected {some(unexpected)}"
            )
        inner = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        ignored = (*expected.heads, *heads)
        return {key: tensor for key, tensor in inner.items() if not key.startswith(ignored)}
    raise WeightsUnavailable(
        f"{origin} does not fit the {layout} layout: "
        f"it holds {some(sorted(map(str, content))) or 'nothing'}"
    )


def some(keys: list[str]) -> str:
    """Join the first names for an error message."""
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    return ", ".join(keys[:3]) + more


def _tensors(content: Any) -> dict[str, Tensor]:
    if not isinstance(content, Mapping):
        return {}
    tensors = {str(key): value for key, value in content.items() if isinstance(value, Tensor)}
    for wrapper in _WRAPPERS:
        if all(key.startswith(wrapper) for key in tensors):
            tensors = {key.removeprefix(wrapper): value for key, value in tensors.items()}
    return tensors
