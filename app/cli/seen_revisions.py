"""The revision of each clustering that this user saw last, in a file of the user's state folder.

An edit sends it, so that it fails if another person has changed the clustering since.
"""

import json
import os
from pathlib import Path

from app.cli.output import atomic_write

_MOST = 1_000  # clusterings; those seen longest ago are forgotten


def seen_revision(clustering_id: str) -> int | None:
    return _read().get(clustering_id)


def remember_revision(clustering_id: str, revision: int) -> None:
    """Call it after the revision was shown. A state folder that cannot be written is ignored: an
    edit then needs `--revision`."""
    seen = _read()
    seen.pop(clustering_id, None)
    seen[clustering_id] = revision
    newest = dict(list(seen.items())[-_MOST:])
    try:
        with atomic_write(_file()) as file:
            json.dump(newest, file)
    except OSError:
        return


def _file() -> Path:
    folder = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(folder) / "temi" / "revisions.json"


def _read() -> dict[str, int]:
    try:
        stored = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(stored, dict):
        return {}
    return {key: value for key, value in stored.items() if isinstance(value, int)}
