"""Kills of random processes at random times; the same seed gives the same order."""

import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import psutil

from tests.chaos.site import Member, Site
from tests.waiting import wait_until

# Mostly workers with a job: idle ones lose nothing.
_VICTIMS = {"job process": 6, "worker": 3, "API": 1}


def kill_at_random(
    site: Site,
    rng: random.Random,
    kills: int,
    pause: tuple[float, float],
    get_ready: Callable[[int], None],
) -> Counter[str]:
    """Returns how many of each were killed; `get_ready` is called with their number before each,
    and again as long as there is no victim: for more jobs, or for some of them to end."""
    killed: Counter[str] = Counter()
    choose: dict[str, Callable[[], list[psutil.Process]]] = {
        "job process": lambda: [job for worker in site.workers for job in worker.jobs()],
        "worker": lambda: [_process(worker) for worker in site.busy_workers()],
        "API": lambda: [_process(api) for api in site.apis if not api.dead],
    }

    def victims(kind: str) -> list[psutil.Process]:
        get_ready(killed.total())
        try:
            return choose[kind]()
        except psutil.NoSuchProcess:  # it has ended in the meantime
            return []

    while killed.total() < kills:
        get_ready(killed.total())
        time.sleep(rng.uniform(*pause))
        (kind,) = rng.choices(list(_VICTIMS), list(_VICTIMS.values()))
        found = wait_until(partial(victims, kind), f"there is a {kind} to kill")
        try:
            rng.choice(found).kill()
        except psutil.NoSuchProcess:
            continue  # it was quicker
        killed[kind] += 1
    return killed


def _process(member: Member) -> psutil.Process:
    return psutil.Process(member.pid)
