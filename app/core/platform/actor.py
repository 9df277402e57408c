"""The sender of a request, and what its key allows."""

from dataclasses import dataclass
from typing import Literal, get_args

from app.core.platform.errors import Forbidden

Scope = Literal["read", "write", "predict", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
DEFAULT_TENANT = "default"


@dataclass(frozen=True, kw_only=True)
class Actor:
    tenant: str
    scopes: frozenset[Scope]
    key_id: str | None = None  # None: no key is needed, or it is TEMI_API_KEY
    key_name: str | None = None
    requests_per_minute: int | None = None
    storage_bytes: int | None = None

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or "admin" in self.scopes

    def check(self, scope: Scope) -> None:
        if not self.may(scope):
            raise Forbidden(f"This request needs a key with the scope `{scope}`.")


# Without any key, every request has all scopes.
ANONYMOUS = Actor(tenant=DEFAULT_TENANT, scopes=frozenset(SCOPES))
# TEMI_API_KEY.
OWNER = Actor(tenant=DEFAULT_TENANT, scopes=frozenset(SCOPES), key_name="TEMI_API_KEY")
