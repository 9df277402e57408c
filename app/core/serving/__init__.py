"""Models that answer: from the files of a version to labels for new images."""

from app.core.serving.files import BACKBONE_FILE, MODEL_FILE, ModelFiles, load_model
from app.core.serving.service import Outcome, Serving

__all__ = ["BACKBONE_FILE", "MODEL_FILE", "ModelFiles", "Outcome", "Serving", "load_model"]
