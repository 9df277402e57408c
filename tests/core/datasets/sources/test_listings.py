"""A listing is written once and stays."""

import pytest

from app.core.datasets.sources.listings import count_listing, read_listing, write_listing
from app.core.platform.errors import ArchiveTooLarge
from app.core.runtime import Runtime


def test_the_first_listing_of_a_job_stays(runtime: Runtime) -> None:
    storage, first = runtime.storage, [{"name": "a\udcff"}, {"name": "b"}]
    write_listing(storage, "job_1", first, 10)
    write_listing(storage, "job_1", [{"name": "c"}], 10)
    assert list(read_listing(storage, "job_1")) == first
    assert count_listing(storage, "job_1") == 2
    assert len(list(storage.list("listings"))) == 1


def test_too_many_files(runtime: Runtime) -> None:
    with pytest.raises(ArchiveTooLarge):
        write_listing(runtime.storage, "job_1", ({"name": str(n)} for n in range(3)), 2)
    assert not [path for path in runtime.settings.blob_dir.rglob("*") if path.is_file()]
