"""The functions of the model registry in one place, for routes that use many of them."""

from app.core.models.aliases import (
    alias_changes,
    aliases,
    remove_alias,
    rollback_alias,
    rollback_target,
    set_alias,
)
from app.core.models.files import read_verified
from app.core.models.names import check_alias, check_name
from app.core.models.versions import add_version, get_model, get_version, resolve

__all__ = [
    "add_version",
    "alias_changes",
    "aliases",
    "check_alias",
    "check_name",
    "get_model",
    "get_version",
    "read_verified",
    "remove_alias",
    "resolve",
    "rollback_alias",
    "rollback_target",
    "set_alias",
]
