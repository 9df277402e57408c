"""Models that answer: from the files of a version to labels for new images.

`service` is the API's side and `child`, `engine`, `lanes` and `models` that of the process which
computes; `messages` go between them. `references` knows which version a name stands for.
"""

from app.core.serving.files import BACKBONE_FILE, MODEL_FILE, ModelFiles, load_model
from app.core.serving.messages import Outcome
from app.core.serving.service import Serving

__all__ = ["BACKBONE_FILE", "MODEL_FILE", "ModelFiles", "Outcome", "Serving", "load_model"]
