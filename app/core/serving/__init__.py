"""Online prediction: from the files of a model version to labels for new images.

`client` runs in the API; `process`, `predictor`, `batching` and `models` run in the prediction
process; `ipc` and `messages` connect them. `resolver` maps a model reference to a version.
"""

from app.core.models.files import BACKBONE_FILE, MODEL_FILE, ModelFiles, load_model
from app.core.serving.client import Serving
from app.core.serving.messages import Embedded, Outcome

__all__ = [
    "BACKBONE_FILE",
    "MODEL_FILE",
    "Embedded",
    "ModelFiles",
    "Outcome",
    "Serving",
    "load_model",
]
