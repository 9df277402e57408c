"""More requests than can be answered: some get Retry-After, and memory stays constant.

Ten minutes of it: `python -m benchmarks.serving --overload-minutes 10`.
"""

from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from benchmarks.http_load import Result, multipart_request, run_load
from tests.chaos.conftest import StartSite
from tests.chaos.site import Member
from tests.chaos.work import cluster, job_row, upload
from tests.images import jpeg_bytes
from tests.promises import Promises

_MODEL = "wanted"
_PIECES, _PIECE_SECONDS = 6, 15.0
_QUEUE, _SENDERS = 64, 200  # images that may wait, and connections to fill the queue
_MOST_GROWTH = 0.05
_LATER = (429, 503)


@pytest.mark.usefixtures("only_in_full")
def test_twice_the_capacity(start_site: StartSite, archives: Path, promises: Promises) -> None:
    with start_site(workers=1, predict_queue=_QUEUE) as site, site.client() as client:
        ingest = client.wait(upload(client, 0, archives))
        dataset_id = job_row(site.runtime, ingest.id).dataset_id
        client.wait(cluster(client, dataset_id, _MODEL, steps=5))
        client.predict_images(_MODEL, [next(iter(client.images(dataset_id))).id])
        place = urlsplit(site.urls[0])
        address = ("127.0.0.1", place.port or 0)
        path = f"/v1/models/{_MODEL}:predict"
        request = multipart_request(place.netloc, path, "new.jpg", jpeg_bytes("teal", (640, 480)))
        found, memory, capacity = Result(), [], 0.0
        for _ in range(_PIECES):  # repeated, because the machine may be busy
            alone = run_load(address, [request], clients=32, seconds=3).count(200) / 3
            capacity = max(capacity, alone)
            part = run_load(
                address, [request], clients=_SENDERS, seconds=_PIECE_SECONDS, rate=2 * capacity
            )
            found.join(part)
            memory.append(_memory(site.apis[0]))
    later = {status for status in _LATER if found.count(status)}
    untold = [status for status in later if b"retry-after:" not in found.heads[status].lower()]
    other = sum(found.count(status) for status in found.taken if status not in (200, *_LATER))
    growth = memory[-1] / memory[0] - 1
    promises.keep(
        "overload",
        f"429 or 503 with Retry-After, memory +{_MOST_GROWTH:.0%} at most; twice the capacity "
        f"for {_PIECES * _PIECE_SECONDS:.0f} s",
        f"{found.count(200):,} answered, {sum(map(found.count, _LATER)):,} refused until later, "
        f"{other + found.broken} otherwise; memory {growth:+.1%}",
        kept=bool(later)
        and not untold
        and not other
        and not found.broken
        and growth <= _MOST_GROWTH,
    )


def _memory(api: Member) -> int:
    """Returns the memory of all its processes."""
    process = psutil.Process(api.pid)
    family = (process, *process.children(recursive=True))
    return sum(member.memory_info().rss for member in family)
