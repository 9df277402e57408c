"""What a team has said about the groups of a clustering, taken over by a later one of the same
dataset: the difference of the two, and its adoption group by group."""

from app.core.clusterings.retraining.adoption import AdoptionPlan, apply_adoption, plan_adoption
from app.core.clusterings.retraining.changed_images import ChangedImages, read_changed_images
from app.core.clusterings.retraining.changes import Changes, read_changes

__all__ = [
    "AdoptionPlan",
    "ChangedImages",
    "Changes",
    "apply_adoption",
    "plan_adoption",
    "read_changed_images",
    "read_changes",
]
