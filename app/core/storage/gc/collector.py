"""Find what nothing refers to, and remove it; never what anything does."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.core.platform.locks import lock_name
from app.core.platform.tables import Dataset, Embedding
from app.core.runtime import Runtime
from app.core.storage import StoredFile
from app.core.storage.gc.owners import KINDS, Kind
from app.core.storage.gc.retention import is_held

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


def collect(
    runtime: Runtime, *, dry_run: bool = False, now: float | None = None
) -> Iterator[Garbage]:
    """Everything that goes, or would go, while it goes."""
    for kind, folder in parts():
        yield from collect_part(runtime, kind, folder, dry_run=dry_run, now=now)


def collect_part(
    runtime: Runtime, kind: Kind, folder: str, *, dry_run: bool = False, now: float | None = None
) -> Iterator[Garbage]:
    before = (time.time() if now is None else now) - kind.guard_seconds(runtime.settings)
    for some in _chunks(_old(runtime, kind, folder, before)):
        with runtime.db.read() as session:
            if not dry_run and is_held(session):
                return
            # Asked after the look at the files: whoever has used one since has made it young.
            owned = kind.owned(session, [found.key for found in some])
        for found in some:
            if found.key not in owned and (dry_run or _remove(runtime, kind, found, before)):
                yield found


def _old(runtime: Runtime, kind: Kind, folder: str, before: float) -> Iterator[Garbage]:
    def whole(file: StoredFile) -> str:
        return "/".join(file.key.split("/")[: kind.whole])

    for key, files in groupby(runtime.storage.list(folder), key=whole):
        found = Garbage(kind.name, key, tuple(files))
        if found.modified <= before:
            yield found


def _remove(runtime: Runtime, kind: Kind, found: Garbage, before: float) -> bool:
    if not kind.shared:
        return _delete_files(runtime, found, before)
    # Whoever wants to refer to these files waits until they are gone, or is seen here.
    with runtime.db.write() as session:
        lock_name(session, found.key)
        _lock_datasets(session, found.key)
        if kind.owned(session, [found.key]):
            return False
        session.execute(delete(Embedding).where(Embedding.folder == found.key))
        return _delete_files(runtime, found, before)


def _lock_datasets(session: Session, folder: str) -> None:
    """No job starts on them meanwhile."""
    of = select(Embedding.dataset_id).where(Embedding.folder == folder)
    session.execute(
        select(Dataset.id).where(Dataset.id.in_(of)).order_by(Dataset.id).with_for_update()
    )


def _delete_files(runtime: Runtime, found: Garbage, before: float) -> bool:
    gone = [runtime.storage.delete_unless_young(file.key, before) for file in found.files]
    return all(gone)


def _chunks(found: Iterable[Garbage]) -> Iterator[list[Garbage]]:
    iterator = iter(found)
    while chunk := list(islice(iterator, _AT_ONCE)):
        yield chunk
