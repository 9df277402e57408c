"""Request and response schemas. Tables and library types are never sent."""

from app.api.schemas.clustering_changes import *  # noqa: F403
from app.api.schemas.clusterings import *  # noqa: F403
from app.api.schemas.common import *  # noqa: F403
from app.api.schemas.datasets import *  # noqa: F403
from app.api.schemas.drift import *  # noqa: F403
from app.api.schemas.exports import *  # noqa: F403
from app.api.schemas.inference_protocol import *  # noqa: F403
from app.api.schemas.jobs import *  # noqa: F403
from app.api.schemas.label_studio import *  # noqa: F403
from app.api.schemas.models import *  # noqa: F403
from app.api.schemas.operations import *  # noqa: F403
from app.api.schemas.predictions import *  # noqa: F403
from app.api.schemas.refusals import *  # noqa: F403
from app.api.schemas.review import *  # noqa: F403
from app.api.schemas.search import *  # noqa: F403
from app.api.schemas.system import *  # noqa: F403
from app.api.schemas.uploads import *  # noqa: F403
from app.api.schemas.workers import *  # noqa: F403
