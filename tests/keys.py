"""API keys for tests."""

from typing import Any

from app.core.access.keys import create_key
from app.core.runtime import Runtime


def make_key(runtime: Runtime, **options: Any) -> tuple[str, str]:
    """Creates a key; returns its id and its text."""
    with runtime.db.write() as session:
        key, text = create_key(
            session, **{"tenant": "a", "name": "x", "scopes": ["read"], **options}
        )
    return key.id, text


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}
