"""The vectors of the words that may name clusters, in the space of a model's features."""

import asyncio
import hashlib
from functools import cached_property
from pathlib import Path

import numpy as np

from app.core.clusterings.name_suggestions import Vocabulary
from app.core.models.files import ModelFiles
from app.core.platform.settings import Settings
from app.core.serving.client import Serving
from temi.naming.vocabulary import default_vocabulary, describe, parse_vocabulary

_MAX_WORDS = 10_000
_BATCH_WORDS = 64  # of one request to the prediction process, which has a deadline
_MAX_KEPT = 4  # backbones


class VocabularyEmbedder:
    """Embeds the words once for each backbone; belongs to one event loop."""

    def __init__(self, settings: Settings, serving: Serving) -> None:
        self._file: Path | None = settings.vocabulary_file
        self._serving = serving
        self._kept: dict[tuple[str, str], Vocabulary] = {}
        self._lock = asyncio.Lock()

    @cached_property
    def _words(self) -> list[str]:
        if self._file is None:
            return default_vocabulary()
        return parse_vocabulary(self._file.read_text())[:_MAX_WORDS]

    async def of(self, model: ModelFiles) -> Vocabulary | None:
        """None if the model's features cannot be compared with texts."""
        if not model.has_text_encoder or not self._words:
            return None
        key = (model.backbone, model.weights_sha256)
        async with self._lock:  # a second request waits for the first
            if key not in self._kept:
                if len(self._kept) >= _MAX_KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[key] = await self._embed(model)
            return self._kept[key]

    async def _embed(self, model: ModelFiles) -> Vocabulary:
        texts = [describe(word) for word in self._words]
        vectors: list[np.ndarray] = []
        for start in range(0, len(texts), _BATCH_WORDS):
            part = texts[start : start + _BATCH_WORDS]
            vectors += await self._serving.embed_texts(model, part)
        digest = hashlib.sha256("\n".join([model.weights_sha256, *texts]).encode())
        return Vocabulary(words=self._words, vectors=np.stack(vectors), key=digest.hexdigest())
