"""The text encoder of a CLIP model: texts to vectors in the space of its image features."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from temi.backbones.base import hash_tensors
from temi.backbones.catalog import check_backbone, has_text_encoder, parse_name
from temi.backbones.checkpoints import backbone_state
from temi.backbones.load import image_tower, open_clip_options
from temi.backbones.weights import load_exactly, read_content
from temi.device import resolve_device
from temi.errors import TemiError, WeightsUnavailable

_BATCH_TEXTS = 64


class TextEncoder:
    """Belongs to the image encoder with this hash: cosines with its features are comparable."""

    def __init__(self, name: str, model: Any, tokenizer: Any, device: torch.device) -> None:
        self.name = name
        self.weights_hash = hash_tensors(image_tower(model).state_dict())
        self._device = device
        model.visual = None  # only the texts are needed from here on
        self._model = model.eval().requires_grad_(False).to(device)
        self._tokenizer = tokenizer

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Map texts to vectors of length one: (T, D)."""
        parts = [
            self._model.encode_text(
                self._tokenizer(list(texts[start : start + _BATCH_TEXTS])).to(self._device),
                normalize=True,
            )
            for start in range(0, len(texts), _BATCH_TEXTS)
        ]
        vectors: npt.NDArray[np.float32] = torch.cat(parts).float().cpu().numpy()
        return vectors


def load_text_encoder(
    name: str, *, weights_dir: Path | None = None, device: str = "auto"
) -> TextEncoder:
    """Load the text encoder of a CLIP backbone from the same weights as its image encoder."""
    import open_clip

    check_backbone(name, weights_dir)
    if not has_text_encoder(name):
        raise TemiError(f"{name} has no text encoder")
    parsed = parse_name(name)
    options, file = open_clip_options(parsed), parsed.local_file(weights_dir)
    try:
        if file is None:
            model = open_clip.create_model(parsed.model, pretrained=parsed.pretrained, **options)
        else:
            model = open_clip.create_model(parsed.model, pretrained_text=False, **options)
            state = backbone_state(read_content(file), "open_clip_model", origin=str(file))
            load_exactly(model, state, origin=str(file))
        tokenizer = open_clip.get_tokenizer(parsed.model)
    except (OSError, RuntimeError) as error:
        raise WeightsUnavailable(
            f"the text encoder or the tokenizer of {name} could not be downloaded: "
            f"{str(error)[:200]}"
        ) from error
    return TextEncoder(name, model, tokenizer, resolve_device(device))
