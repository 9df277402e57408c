"""Find what nothing refers to, and remove it; never what anything does."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.core.platform.db import Database
from app.core.platform.locks import lock_name
from app.core.platform.settings import Settings
from app.core.platform.tables import Dataset, Embedding
from app.core.storage.base import Storage, StoredFile
from app.core.storage.gc.owners import KINDS, Kind
from app.core.storage.gc.retention import is_retained
from app.core.storage.keys import parent_of

_AT_ONCE = 500  # asked for in one statement


@dataclass(frozen=True)
class Garbage:
    """What goes as one: a file, or a folder with all its files."""

    kind: str
    key: str
    files: tuple[StoredFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def modified(self) -> float:
        return max(file.modified for file in self.files)


def parts() -> list[tuple[Kind, str]]:
    """All there is, in pieces that can be looked at one at a time."""
    return [(kind, folder) for kind in KINDS for folder in kind.folders]


@dataclass(frozen=True)
class Collector:
    db: Database
    storage: Storage
    settings: Settings

    def collect(self, *, dry_run: bool = False, now: float | None = None) -> Iterator[Garbage]:
        """Removes garbage of every kind; yields each piece as it goes, or would go."""
        for kind, folder in parts():
            yield from self.collect_part(kind, folder, dry_run=dry_run, now=now)

    def collect_part(
        self, kind: Kind, folder: str, *, dry_run: bool = False, now: float | None = None
    ) -> Iterator[Garbage]:
        before = (time.time() if now is None else now) - kind.min_age_seconds(self.settings)
        for some in _chunks(self._old(kind, folder, before)):
            with self.db.read() as session:
                if not dry_run and is_retained(session):
                    return
                # Queried after the files were listed: a new reference has touched its file.
                owned = kind.owned(session, [found.key for found in some])
            for found in some:
                if found.key not in owned and (dry_run or self._remove(kind, found, before)):
                    yield found

    def _old(self, kind: Kind, folder: str, before: float) -> Iterator[Garbage]:
        def whole(file: StoredFile) -> str:
            return parent_of(file.key, kind.depth)

        for key, files in groupby(self.storage.list(folder), key=whole):
            found = Garbage(kind.name, key, tuple(files))
            if found.modified <= before:
                yield found

    def _remove(self, kind: Kind, found: Garbage, before: float) -> bool:
        if not kind.shared:
            return self._delete_files(found, before)
        # A job that is about to refer to these files waits until they are gone, or is seen here.
        with self.db.write() as session:
            lock_name(session, found.key)
            _lock_datasets(session, found.key)
            if kind.owned(session, [found.key]):
                return False
            session.execute(delete(Embedding).where(Embedding.folder == found.key))
            return self._delete_files(found, before)

    def _delete_files(self, found: Garbage, before: float) -> bool:
        gone = [self.storage.delete_unless_young(file.key, before) for file in found.files]
        return all(gone)


def _lock_datasets(session: Session, folder: str) -> None:
    """No job starts on them meanwhile."""
    of = select(Embedding.dataset_id).where(Embedding.folder == folder)
    session.execute(
        select(Dataset.id).where(Dataset.id.in_(of)).order_by(Dataset.id).with_for_update()
    )


def _chunks(found: Iterable[Garbage]) -> Iterator[list[Garbage]]:
    iterator = iter(found)
    while chunk := list(islice(iterator, _AT_ONCE)):
        yield chunk
