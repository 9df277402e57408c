"""Kills of random victims at random times; the same seed gives the same order."""

import random
import time
from collections import Counter
from collections.abc import Callable

import psutil

from tests.chaos.site import Member, Site

# Mostly those who hold a job: the others lose nothing that anyone could miss.
_VICTIMS = {"job process": 6, "worker": 3, "API": 1}


def kill_at_random(
    site: Site,
    rng: random.Random,
    kills: int,
    pause: tuple[float, float],
    get_ready: Callable[[int], None],
) -> Counter[str]:
    """Returns how many of each were killed; `get_ready` is called with their number before each,
    for more jobs, or for some of them to end."""
    killed: Counter[str] = Counter()
    choose: dict[str, Callable[[], list[psutil.Process]]] = {
        "job process": lambda: [job for worker in site.workers for job in worker.jobs()],
        "worker": lambda: [_process(worker) for worker in site.busy_workers()],
        "API": lambda: [_process(api) for api in site.apis if not api.dead],
    }
    while killed.total() < kills:
        get_ready(killed.total())
        time.sleep(rng.uniform(*pause))
        (kind,) = rng.choices(list(_VICTIMS), list(_VICTIMS.values()))
        victim = _wait_for_one(choose[kind], rng)
        try:
            victim.kill()
        except psutil.NoSuchProcess:
            continue  # it was quicker
        killed[kind] += 1
    return killed


def _process(member: Member) -> psutil.Process:
    return psutil.Process(member.pid)


def _wait_for_one(
    candidates: Callable[[], list[psutil.Process]], rng: random.Random
) -> psutil.Process:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            if found := candidates():
                return rng.choice(found)
        except psutil.NoSuchProcess:
            pass  # it ended while we looked
        time.sleep(0.05)
    raise AssertionError("nobody to kill: has all work ended?")
