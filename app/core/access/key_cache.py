"""From the text of a key to the actor behind it, seldom with a look at the database."""

import hmac
import threading
import time

from sqlalchemy import select

from app.core.access.keys import has_keys, hash_key, looks_like_key
from app.core.platform.actor import ANONYMOUS, OWNER, Actor
from app.core.platform.clock import db_now
from app.core.platform.db import Database
from app.core.platform.errors import Unauthorized
from app.core.platform.settings import Settings
from app.core.platform.tables import ApiKey

CACHE_SECONDS = 5.0  # a key that was revoked by another process may work for this long
_MOST_CACHED = 10_000


class ApiKeyCache:
    """`known` answers from memory and never waits; `find` may ask the database.

    Only keys that are good are remembered, so that a flood of random ones fills nothing.
    """

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        own = settings.api_key
        self._own_hash = hash_key(own.get_secret_value()) if own is not None else None
        self._needed = own is not None  # keys are; never turns false again
        self._open_until = 0.0
        self._cached: dict[str, tuple[Actor, float]] = {}
        self._changes = 0
        self._lock = threading.Lock()

    @property
    def needed(self) -> bool:
        """As far as is known: False may mean that nothing has asked the database yet."""
        return self._needed

    def known(self, text: str | None) -> Actor | None:
        """None if it takes a look at the database."""
        now = time.monotonic()
        if not self._needed:
            return ANONYMOUS if now < self._open_until else None
        sha256 = hash_key(_given(text))
        if self._own_hash is not None and hmac.compare_digest(sha256, self._own_hash):
            return OWNER
        actor, until = self._cached.get(sha256, (None, 0.0))
        return actor if now < until else None

    def find(self, text: str | None) -> Actor:
        if not self.learn_whether_needed():
            return ANONYMOUS
        if (actor := self.known(text)) is not None:
            return actor
        return self._read(_given(text))

    def forget(self) -> None:
        """Keys have changed: what this process remembers of them is void at once."""
        with self._lock:
            self._changes += 1
            self._open_until = 0.0
            self._cached.clear()

    def learn_whether_needed(self) -> bool:
        """Whether requests need a key; asks the database until they do."""
        changes, now = self._changes, time.monotonic()
        if self._needed or now < self._open_until:
            return self._needed
        with self._db.read() as session:
            needed = has_keys(session)
        with self._lock:
            self._needed = self._needed or needed
            if not needed and changes == self._changes:
                self._open_until = now + CACHE_SECONDS
        return needed

    def _read(self, text: str) -> Actor:
        changes, now, sha256 = self._changes, time.monotonic(), hash_key(text)
        row = self._row(sha256) if looks_like_key(text) else None
        if row is None:
            raise Unauthorized("This API key is not known here, or it was revoked or has expired.")
        key, left = row
        actor = Actor(
            tenant=key.tenant,
            scopes=frozenset(key.scopes),
            key_id=key.id,
            key_name=key.name,
            requests_per_minute=key.requests_per_minute,
            storage_bytes=key.storage_bytes,
        )
        with self._lock:
            if changes == self._changes:  # else it may have been revoked since it was read
                if len(self._cached) >= _MOST_CACHED:
                    self._cached.clear()
                self._cached[sha256] = (actor, now + min(CACHE_SECONDS, left))
        return actor

    def _row(self, sha256: str) -> tuple[ApiKey, float] | None:
        """A key that is good, and for how many seconds it will be."""
        query = select(ApiKey, ApiKey.expires_at - db_now()).where(ApiKey.sha256 == sha256)
        with self._db.read() as session:
            found = session.execute(query).one_or_none()
        if found is None or not hmac.compare_digest(found[0].sha256, sha256):
            return None
        key, left = found[0], CACHE_SECONDS if found[1] is None else float(found[1])
        return (key, left) if key.revoked_at is None and left > 0 else None


def _given(text: str | None) -> str:
    if not text:
        raise Unauthorized("Send the API key as `Authorization: Bearer ...`.")
    return text
