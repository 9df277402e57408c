"""The size of each scenario: small in `make test`, full in `make chaos`."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Profile:
    ingest_jobs: int
    ingest_kills: int
    cluster_jobs: int
    cluster_kills: int
    broker_kills: int
    broker_freezes: int
    database_restarts: int
    stale_workers: int  # on each database
    queued_cancels: int
    running_cancels: int
    innocents: int  # other jobs beside the one that kills its process
    skewed_jobs: int
    timed: bool  # whether durations are checked: not where other tests run in parallel

    def in_time(self, seconds: float, limit: float) -> bool:
        return not self.timed or seconds <= limit


PROFILES = {
    "short": Profile(
        ingest_jobs=2,
        ingest_kills=2,
        cluster_jobs=1,
        cluster_kills=1,
        broker_kills=2,
        broker_freezes=1,
        database_restarts=1,
        stale_workers=1,
        queued_cancels=2,
        running_cancels=2,
        innocents=1,
        skewed_jobs=2,
        timed=False,
    ),
    "full": Profile(
        ingest_jobs=100,
        ingest_kills=88,
        cluster_jobs=3,
        cluster_kills=12,
        broker_kills=20,
        broker_freezes=5,
        database_restarts=10,
        stale_workers=10,
        queued_cancels=25,
        running_cancels=25,
        innocents=5,
        skewed_jobs=10,
        timed=True,
    ),
}
