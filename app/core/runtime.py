"""The shared objects of a process: settings, database, storage, queue."""

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from app.core.datasets.archives import ArchiveLimits
from app.core.datasets.uploads import UploadFiles
from app.core.jobs.kinds import KINDS
from app.core.jobs.notifications import JobNotifier
from app.core.platform.db import Database
from app.core.platform.settings import Settings
from app.core.storage import Storage, open_storage
from app.core.storage.deletion.collector import Collector

if TYPE_CHECKING:
    from celery import Celery

    from app.core.datasets.decoding.pool import DecoderPool


@dataclass(frozen=True)
class Runtime:
    settings: Settings

    @cached_property
    def db(self) -> Database:
        return Database(self.settings.sqlalchemy_url, self.settings.database_seconds)

    @cached_property
    def storage(self) -> Storage:
        return open_storage(self.settings)

    @property
    def decoders(self) -> "DecoderPool":
        """The decoder processes, shared within this process."""
        from app.core.datasets.decoding.pool import (
            decoder_pool,  # imports Pillow, which few processes need
        )

        return decoder_pool(self.settings)

    @cached_property
    def celery(self) -> "Celery":
        from app.core.jobs.queue import (
            make_celery,  # imports Celery, which job processes do not need
        )

        return make_celery(self.settings)

    @cached_property
    def notifier(self) -> JobNotifier:
        from app.core.jobs.queue import publish_notification

        return JobNotifier(
            lambda job_id, kind: publish_notification(self.celery, job_id, KINDS[kind].resource)
        )

    @cached_property
    def stopping(self) -> threading.Event:
        """Set when this process is stopping."""
        return threading.Event()

    @property
    def uploads(self) -> UploadFiles:
        return UploadFiles(self.storage, self.settings.staging_dir)

    @property
    def collector(self) -> Collector:
        return Collector(self.db, self.storage, self.settings)

    @property
    def archive_limits(self) -> ArchiveLimits:
        return ArchiveLimits.of(self.settings)
