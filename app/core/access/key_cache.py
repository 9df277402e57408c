"""Maps an API key to its actor, from memory where possible."""

import hmac
import threading
import time

from sqlalchemy import select

from app.core.access.keys import has_keys, hash_key, looks_like_key
from app.core.platform.actor import ANONYMOUS, OWNER, Actor
from app.core.platform.clock import db_now
from app.core.platform.db import Database
from app.core.platform.errors import InvalidApiKey, Unauthorized
from app.core.platform.settings import Settings
from app.core.platform.tables import ApiKey

CACHE_SECONDS = 5.0  # a key that another process has revoked may work for this long
_MAX_CACHED = 10_000


class ApiKeyCache:
    """`cached` never blocks; `authenticate` may read the database.

    Only valid keys are cached, so that random ones do not fill the memory.
    """

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        own = settings.api_key
        self._own_hash = hash_key(own.get_secret_value()) if own is not None else None
        self._required = own is not None  # never becomes False again
        self._open_until = 0.0
        self._cached: dict[str, tuple[Actor, float]] = {}
        self._changes = 0
        self._lock = threading.Lock()

    @property
    def required(self) -> bool:
        """Whether requests need a key; False may mean that the database was not read yet."""
        return self._required

    def cached(self, text: str | None) -> Actor | None:
        """Returns None if the database has to be read."""
        now = time.monotonic()
        if not self._required:
            return ANONYMOUS if now < self._open_until else None
        sha256 = hash_key(_require(text))
        if self._own_hash is not None and hmac.compare_digest(sha256, self._own_hash):
            return OWNER
        actor, until = self._cached.get(sha256, (None, 0.0))
        return actor if now < until else None

    def authenticate(self, text: str | None) -> Actor:
        if not self.check_required():
            return ANONYMOUS
        if (actor := self.cached(text)) is not None:
            return actor
        return self._read(_require(text))

    def clear(self) -> None:
        """Drops all keys from the cache, after a change of keys."""
        with self._lock:
            self._changes += 1
            self._open_until = 0.0
            self._cached.clear()

    def check_required(self) -> bool:
        """Whether requests need a key; reads the database until they do."""
        changes, now = self._changes, time.monotonic()
        if self._required or now < self._open_until:
            return self._required
        with self._db.read() as session:
            required = has_keys(session)
        with self._lock:
            self._required = self._required or required
            if not required and changes == self._changes:
                self._open_until = now + CACHE_SECONDS
        return required

    def _read(self, text: str) -> Actor:
        changes, now, sha256 = self._changes, time.monotonic(), hash_key(text)
        row = self._row(sha256) if looks_like_key(text) else None
        if row is None:
            raise InvalidApiKey("The API key that was sent is unknown, revoked or expired.")
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
            if changes == self._changes:  # otherwise it may have been revoked since it was read
                if len(self._cached) >= _MAX_CACHED:
                    self._cached.clear()
                self._cached[sha256] = (actor, now + min(CACHE_SECONDS, left))
        return actor

    def _row(self, sha256: str) -> tuple[ApiKey, float] | None:
        """Returns a valid key and the seconds until it expires."""
        query = select(ApiKey, ApiKey.expires_at - db_now()).where(ApiKey.sha256 == sha256)
        with self._db.read() as session:
            found = session.execute(query).one_or_none()
        if found is None or not hmac.compare_digest(found[0].sha256, sha256):
            return None
        key, left = found[0], CACHE_SECONDS if found[1] is None else float(found[1])
        return (key, left) if key.revoked_at is None and left > 0 else None


def _require(text: str | None) -> str:
    if not text:
        raise Unauthorized("No API key was sent. Send it as `Authorization: Bearer KEY`.")
    return text
