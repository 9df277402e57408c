"""The bytes of images, stored under their hash; removed some time after their last image went."""

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import uuid4

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.core.clock import db_now
from app.core.runtime import Runtime
from app.core.storage import Batch, Storage, blob_key
from app.core.tables import CondemnedBlob, Image

THUMBNAIL_SIZES = (64, 128, 256, 512)
_SWEEP_ROWS = 500
_ORPHAN_SECONDS = 24 * 3600.0  # no ingest leaves more time between a file and its row
_PREFIXES = 256


def thumbnail_key(sha256: str, size: int) -> str:
    return f"thumbnails/{sha256[:2]}/{sha256}-{size}.webp"


def keep_blob(storage: Storage, sha256: str, data: bytes, batch: Batch | None = None) -> None:
    """Store the bytes, or make those that are there young, so that no sweep takes them."""
    try:
        os.utime(storage.path(blob_key(sha256)))
    except FileNotFoundError:
        (batch or storage).write(blob_key(sha256), data)


def condemn(session: Session, *which: ColumnElement[bool]) -> None:
    """Have the sweep look at the bytes of these images, which are about to go."""
    hashes = select(Image.sha256, db_now()).where(*which)
    rows = hashes.group_by(Image.sha256).order_by(Image.sha256)
    statement = _insert(session).from_select(["sha256", "condemned_at"], rows)
    session.execute(
        statement.on_conflict_do_update(
            index_elements=["sha256"], set_={"condemned_at": statement.excluded.condemned_at}
        )
    )


def remove_condemned(runtime: Runtime) -> int:
    """One round of the sweep; returns how many blobs were removed."""
    grace = runtime.settings.delete_grace_seconds
    with runtime.db.read() as session:
        due = session.execute(
            select(CondemnedBlob.sha256, CondemnedBlob.condemned_at)
            .where(CondemnedBlob.condemned_at <= db_now() - grace)
            .order_by(CondemnedBlob.condemned_at)
            .limit(_SWEEP_ROWS)
        ).all()
        old = [row for row in due if is_older(_blob(runtime, row.sha256), grace)]
        # Asked after the look at the file: whoever has used it since has made it young.
        used = _used(session, [row.sha256 for row in old])
    unused = [row.sha256 for row in old if row.sha256 not in used]
    removed = {sha256 for sha256 in unused if _remove(runtime, sha256, grace)}
    settled = [row for row in old if row.sha256 in used | removed]
    if settled:
        with runtime.db.write() as session:
            for row in settled:  # condemned again in between: it stays for the next round
                _forget(session, row.sha256, row.condemned_at)
    return len(removed)


def condemn_orphans(runtime: Runtime, prefix: int) -> int:
    """Find bytes whose ingest died before it wrote their row; one of 256 folders at a time."""
    folder = runtime.storage.path(blob_key(f"{prefix % _PREFIXES:02x}")).parent
    old = [path.name for path in _files(folder) if is_older(path, _ORPHAN_SECONDS)]
    orphans = []
    for start in range(0, len(old), _SWEEP_ROWS):
        hashes = old[start : start + _SWEEP_ROWS]
        with runtime.db.read() as session:
            used = _used(session, hashes)
        orphans += [sha256 for sha256 in hashes if sha256 not in used]
    if orphans:
        with runtime.db.write() as session:
            session.execute(
                _insert(session).on_conflict_do_nothing(),
                [{"sha256": sha256} for sha256 in orphans],
            )
    return len(orphans)


def _insert(session: Session) -> "sqlite.Insert":
    on_postgres = session.get_bind().dialect.name == "postgresql"
    # The two dialects' statements are alike in all that is used here.
    return postgresql.insert(CondemnedBlob) if on_postgres else sqlite.insert(CondemnedBlob)  # type: ignore[return-value]


def _used(session: Session, hashes: Sequence[str]) -> set[str]:
    return set(session.scalars(select(Image.sha256).where(Image.sha256.in_(hashes)).distinct()))


def _forget(session: Session, sha256: str, condemned_at: float) -> None:
    session.execute(
        delete(CondemnedBlob).where(
            CondemnedBlob.sha256 == sha256, CondemnedBlob.condemned_at == condemned_at
        )
    )


def _remove(runtime: Runtime, sha256: str, grace: float) -> bool:
    """Taken aside first: an ingest that looks for the file in this moment writes it anew."""
    path, aside = _blob(runtime, sha256), runtime.settings.temporary_dir / uuid4().hex
    try:
        path.rename(aside)
    except FileNotFoundError:
        pass
    else:
        if not is_older(aside, grace):
            aside.replace(path)  # somebody has just made use of it
            return False
        aside.unlink()
    for size in THUMBNAIL_SIZES:
        runtime.storage.delete(thumbnail_key(sha256, size))
    return True


def _blob(runtime: Runtime, sha256: str) -> Path:
    return runtime.storage.path(blob_key(sha256))


def _files(folder: Path) -> Iterable[Path]:
    return folder.iterdir() if folder.is_dir() else ()


def is_older(path: Path, seconds: float) -> bool:
    """A file that is not there counts as old."""
    try:
        return path.stat().st_mtime <= time.time() - seconds
    except FileNotFoundError:
        return True
