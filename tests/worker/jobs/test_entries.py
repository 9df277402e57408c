"""The worker has an entry function for every job kind."""

import pkgutil

from app.core.jobs.kinds import KINDS
from worker.jobs import ENTRIES


def test_entries_cover_the_table_of_kinds() -> None:
    assert list(ENTRIES) == list(KINDS)


def test_entries_can_be_imported() -> None:
    assert all(callable(pkgutil.resolve_name(entry)) for entry in ENTRIES.values())
