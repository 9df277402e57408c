"""Workers whose clocks differ by an hour."""

import shutil
import subprocess
import sys
from itertools import repeat
from pathlib import Path

import pytest

from tests.chaos.conftest import StartSite
from tests.chaos.profile import Profile
from tests.chaos.work import KINDS, Uploads, job_row, tally, undisturbed
from tests.promises import Promises
from tests.servers import Server

_HOUR = 3600


@pytest.fixture
def skewed(tmp_path: Path) -> Path:
    """Builds a library that shifts the clock of a process that preloads it."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler and Linux")
    library = tmp_path / "skewed_clock.so"
    source = Path(__file__).with_name("skewed_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    return library


def _moved(library: Path, seconds: int) -> dict[str, str]:
    return {"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(seconds)}


def test_the_library_moves_the_clock(skewed: Path) -> None:
    program = "import time, datetime; print(time.time(), datetime.datetime.now().timestamp())"
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, env=_moved(skewed, _HOUR), capture_output=True, check=True)
    plain = subprocess.run(command, capture_output=True, check=True)
    for moved, right in zip(ran.stdout.split(), plain.stdout.split(), strict=True):
        assert float(moved) - float(right) == pytest.approx(_HOUR, abs=60)


def test_clocks_an_hour_apart(
    start_site: StartSite,
    own_postgres: Server,
    own_redis: Server,
    skewed: Path,
    archives: Path,
    profile: Profile,
    promises: Promises,
) -> None:
    servers = {"database_url": f"{own_postgres.url}/postgres", "broker_url": own_redis.url}
    # A lease must look valid to a worker whose clock is an hour off.
    extra = {"worker-0": _moved(skewed, _HOUR), "worker-1": _moved(skewed, -_HOUR)}
    with start_site(extra=extra, **servers) as site:
        jobs, bits = undisturbed(site, archives, range(KINDS))
        with Uploads(site, archives, repeat(KINDS - 1), least=profile.skewed_jobs) as uploads:
            uploads.finish()
        found = tally(site.runtime, jobs | uploads.jobs, bits)
        rows = [job_row(site.runtime, job_id) for job_id in jobs | uploads.jobs]
    taken_over = [row for row in rows if row.fence != 1]
    workers = {row.worker for row in rows}
    promises.keep(
        "clock skew",
        "0 effect; one worker an hour ahead, one an hour behind",
        f"{found}, {len(taken_over)} leases misjudged; {len(rows)} jobs on {len(workers)} workers",
        kept=found.clean and not taken_over and len(workers) == 2,
    )
