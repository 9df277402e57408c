"""Models that answer: from the files of a version to labels for new images.

`client` is the API's side; `process`, `predictor`, `batching` and `models` are that of the process
which computes; `ipc` and `messages` go between them. `references` resolves a name to a version.
"""

from app.core.models.files import BACKBONE_FILE, MODEL_FILE, ModelFiles, load_model
from app.core.serving.client import Serving
from app.core.serving.messages import Outcome

__all__ = ["BACKBONE_FILE", "MODEL_FILE", "ModelFiles", "Outcome", "Serving", "load_model"]
