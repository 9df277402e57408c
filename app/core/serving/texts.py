"""Embeds texts in the prediction process, by the text encoder of a model's backbone."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import structlog

from app.core.models.files import ModelFiles
from app.core.platform.errors import (
    DeadlineExceeded,
    ModelIntegrity,
    PredictorUnavailable,
    ServiceError,
)
from app.core.platform.settings import Settings
from app.core.serving.messages import Embedded, EmbedTexts, PredictFailure, PredictResult

if TYPE_CHECKING:
    from temi.backbones.text import TextEncoder

log = structlog.get_logger()


class TextEmbedder:
    """One thread, and the encoder that was used last."""

    def __init__(self, settings: Settings, send: Callable[..., None]) -> None:
        self._settings = settings
        self._send = send
        self._encoder: TextEncoder | None = None
        self._thread = ThreadPoolExecutor(1, "texts")

    def submit(self, message: EmbedTexts) -> None:
        self._thread.submit(self._answer, message)

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    def _answer(self, message: EmbedTexts) -> None:
        try:
            if time.monotonic() > message.deadline:
                raise DeadlineExceeded("The text was queued for longer than its deadline; retry.")
            outcomes: list[Embedded] = list(self._load(message.model).embed(message.texts))
        except Exception as error:  # noqa: BLE001 - the thread must go on, and a client waits
            self._send(PredictFailure(id=message.id, error=_as_service_error(error)))
        else:
            self._send(PredictResult(id=message.id, outcomes=outcomes))

    def _load(self, model: ModelFiles) -> "TextEncoder":
        from temi.backbones.text import load_text_encoder

        known = self._encoder
        if known is not None and (known.name, known.weights_hash) == (
            model.backbone,
            model.weights_sha256,
        ):
            return known
        self._encoder = None  # freed before the next one is loaded
        loaded = load_text_encoder(
            model.backbone, weights_dir=self._settings.weights_dir, device=self._settings.device
        )
        if loaded.weights_hash != model.weights_sha256:
            raise ModelIntegrity(
                f"The weights of {model.backbone} on this machine are not those that the images "
                "were embedded with; put the file that they were embedded with into "
                "TEMI_WEIGHTS_DIR, or cluster the dataset again."
            )
        self._encoder = loaded
        return loaded


def _as_service_error(error: Exception) -> ServiceError:
    if isinstance(error, ServiceError):
        return error
    log.error("text_embedding_failed", exc_info=error)
    return PredictorUnavailable(f"The text cannot be embedded: {error}"[:300])
