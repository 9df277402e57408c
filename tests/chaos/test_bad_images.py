"""Ten thousand damaged files in one archive: each becomes an image or an issue."""

from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import select

from app.core.platform.tables import Image
from benchmarks.fuzzed_images import packed
from tests.chaos.conftest import StartSite
from tests.chaos.site import Site
from tests.chaos.work import job_row
from tests.promises import Promises

_FILES = 10_000
_PICTURE = {"size": 64}


@pytest.mark.usefixtures("only_in_full")
def test_damaged_files(start_site: StartSite, archives: Path, promises: Promises) -> None:
    path = archives / "damaged.zip"
    path.write_bytes(packed(_FILES))
    with start_site(workers=1, max_bad_fraction=1.0) as site, site.client() as client:
        before = [member.pid for member in site.members]
        ended = client.wait(client.upload_dataset(path, name="damaged").id)
        statuses = _look_at_all(site)
        died = sum(a != b.pid for a, b in zip(before, site.members, strict=True))
        job = job_row(site.runtime, ended.id)
    crashes = job.crashes + died
    errors = sum(count for status, count in statuses.items() if status >= 500)
    promises.keep(
        "bad images",
        f"0 crashes, 0 x 5xx; {_FILES:,} damaged files",
        f"{crashes} crashes, {errors} x 5xx; {statuses[200]:,} taken and shown, "
        f"{ended.counts.failed:,} named as issues",
        kept=not crashes and not errors and statuses[200] + ended.counts.failed == _FILES,
    )


def _look_at_all(site: Site) -> Counter[int]:
    """Images that were accepted can be decoded later, too."""
    with site.runtime.db.read() as session:
        images = session.scalars(select(Image.id)).all()
    with site.http() as http:
        return Counter(
            http.get(f"/v1/images/{image}/thumbnail", params=_PICTURE).status_code
            for image in images
        )
