"""Checks the source of an ingest in the request, and opens it in the job."""

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from app.core.datasets.archives import (
    ArchiveLimits,
    check_archive,
    has_small_directory,
    member_count,
    read_members,
)
from app.core.datasets.sources.base import Member, Source, storable_name
from app.core.datasets.sources.folders import check_folder, check_path, list_folder, read_file
from app.core.datasets.sources.listings import count_listing, read_listing, write_listing
from app.core.datasets.sources.manifests import Entry, Lookup, manifest_format, read_entries
from app.core.datasets.sources.objects import ObjectReader, check_object_url, list_objects
from app.core.datasets.sources.urls import Fetcher, check_url, is_url
from app.core.platform.activity import reporting
from app.core.platform.errors import DatasetEmpty, ImageTooLarge, ManifestInvalid, ServiceError
from app.core.platform.settings import MiB, Settings
from app.core.storage import Storage
from app.core.storage.buckets import ObjectUrl, is_object_url

_LOCAL_READS = 64
_REMOTE_READS = 8  # waits for the network; each holds a file in memory
_CHECK_ROWS = 100_000  # takes less than a second
_CHECK_BYTES = 8 * MiB  # many requests may check at the same time
_NO_MANIFEST = "There is no manifest.csv or manifest.jsonl at the root of the source."


def check_source(settings: Settings, storage: Storage, source: dict[str, Any]) -> None:
    """The checks that are fast enough for the request; adds what the job needs to `source`."""
    match source["type"]:
        case "archive":
            path = storage.path(source["key"])
            check_archive(path, ArchiveLimits.of(settings))
            if source["labels_from"] == "manifest" and has_small_directory(path):
                _check_own_manifest(settings, storage, source)
        case "folder":
            source["path"] = check_folder(source["path"], settings.source_folders)
        case "objects":
            check_object_url(source["url"], settings.source_buckets)
        case "urls" | "manifest":
            source["rows"] = _check_entries(settings, storage, source)


def _check_entries(settings: Settings, storage: Storage, source: dict[str, Any]) -> int:
    """Checks that every row may be read; returns their number."""
    rows, urls = 0, 0
    with storage.path(source["key"]).open("rb") as file:
        for entry in read_entries(file, source["format"]):
            _check_entry(settings, entry, only_urls=source["type"] == "urls")
            rows += 1
            urls += is_url(entry.path)
            if rows > settings.max_archive_members:
                raise ManifestInvalid(
                    f"The manifest has more than {settings.max_archive_members:,} rows "
                    "(TEMI_MAX_ARCHIVE_MEMBERS)."
                )
            if urls > settings.max_urls:
                raise ManifestInvalid(
                    f"The source has more than {settings.max_urls:,} URLs (TEMI_MAX_URLS)."
                )
    if rows == 0:
        raise DatasetEmpty("The manifest lists no images.")
    return rows


def open_source(
    settings: Settings, storage: Storage, source: dict[str, Any], job_id: str
) -> Source:
    """Opens a source; a job gets the same members in the same order each time."""
    opened = _OPENERS[source["type"]](settings, storage, source, job_id)
    if source["labels_from"] != "manifest" or source["type"] in ("urls", "manifest"):
        return opened
    second = _OPENERS[source["type"]](settings, storage, source, job_id).members
    lookup = Lookup(_own_manifest(second, settings.max_archive_members))
    return replace(opened, members=_with_manifest(opened.members, lookup))


def _check_entry(settings: Settings, entry: Entry, *, only_urls: bool = False) -> None:
    """Raises an error for a line of a manifest that this server may not read."""
    try:
        if is_url(entry.path) or only_urls:
            check_url(entry.path, enabled=settings.source_urls)
        elif is_object_url(entry.path):
            check_object_url(entry.path, settings.source_buckets)
        else:
            check_path(entry.path, settings.source_folders)
    except ServiceError as error:
        line = f"URL {entry.line}" if only_urls else f"Line {entry.line} of the manifest"
        raise type(error)(f"{line}: {error.detail}") from error


def _check_own_manifest(settings: Settings, storage: Storage, source: dict[str, Any]) -> int:
    """Checks the start of the manifest inside an archive; the job checks the rest.

    Returns the number of rows that were checked.
    """
    max_rows = settings.max_archive_members
    limits = replace(ArchiveLimits.of(settings), max_member_bytes=_CHECK_BYTES)
    members = read_members(storage.path(source["key"]), limits)
    try:
        return sum(1 for _ in islice(_own_manifest(members, max_rows), _CHECK_ROWS))
    except ImageTooLarge:
        return 0


def _open_archive(
    settings: Settings, storage: Storage, source: dict[str, Any], _job_id: str
) -> Source:
    def members() -> Iterator[Member]:  # opened when it is read, which may be later
        yield from read_members(storage.path(source["key"]), ArchiveLimits.of(settings))

    return Source(members(), total=member_count(storage.path(source["key"])))


def _open_folder(
    settings: Settings, storage: Storage, source: dict[str, Any], job_id: str
) -> Source:
    roots, limit = settings.source_folders, settings.max_image_bytes
    folder = check_folder(source["path"], roots)
    rows = ({"name": name} for name in list_folder(folder, roots))
    write_listing(storage, job_id, rows, settings.max_archive_members)

    def reader(name: str) -> Callable[[], bytes]:
        return lambda: read_file(str(Path(folder, name)), roots, limit)

    members = (
        Member(position, storable_name(row["name"]), reader(row["name"]))
        for position, row in enumerate(read_listing(storage, job_id))
    )
    return Source(
        members,
        count_listing(storage, job_id),
        parallel_reads=settings.threads,
        reads_together=_LOCAL_READS,
    )


def _open_objects(
    settings: Settings, storage: Storage, source: dict[str, Any], job_id: str
) -> Source:
    root = check_object_url(source["url"], settings.source_buckets)
    rows = list_objects(settings, source["url"])
    write_listing(storage, job_id, rows, settings.max_archive_members)
    objects = ObjectReader(settings)

    def reader(key: str) -> Callable[[], bytes]:
        return lambda: objects.read(ObjectUrl(root.bucket, key))

    members = (
        Member(position, storable_name(row["name"]), reader(row["key"]))
        for position, row in enumerate(read_listing(storage, job_id))
    )
    return Source(members, count_listing(storage, job_id), parallel_reads=_REMOTE_READS)


def _open_manifest(
    settings: Settings, storage: Storage, source: dict[str, Any], _job_id: str
) -> Source:
    read = _EntryReader(settings)

    def members() -> Iterator[Member]:
        with storage.path(source["key"]).open("rb") as file:
            for position, entry in enumerate(read_entries(file, source["format"])):
                yield Member(
                    position,
                    storable_name(entry.path),
                    read.reader(entry),
                    entry.label,
                    entry.attributes,
                )

    return Source(members(), total=source["rows"], parallel_reads=_REMOTE_READS, only_images=True)


class _EntryReader:
    """Reads the files, objects and URLs of a manifest."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._objects = ObjectReader(settings)
        self._fetcher = Fetcher(max_bytes=settings.max_image_bytes, seconds=settings.url_seconds)

    def reader(self, entry: Entry) -> Callable[[], bytes]:
        return lambda: self._read(entry.path)

    def _read(self, path: str) -> bytes:
        settings = self._settings
        if is_url(path):
            check_url(path, enabled=settings.source_urls)
            return self._fetcher.fetch(path)
        if is_object_url(path):
            return self._objects.read(check_object_url(path, settings.source_buckets))
        return read_file(path, settings.source_folders, settings.max_image_bytes)


def _own_manifest(members: Iterator[Member], max_rows: int) -> Iterator[Entry]:
    for member in reporting(members):
        if format_ := manifest_format(member.name):
            entries = read_entries(io.BytesIO(member.read()), format_)
            yield from reporting(islice(entries, max_rows))
            if next(entries, None) is not None:
                raise ManifestInvalid(
                    f"The manifest has more than {max_rows:,} rows (TEMI_MAX_ARCHIVE_MEMBERS)."
                )
            return
    raise ManifestInvalid(_NO_MANIFEST)


def _with_manifest(members: Iterator[Member], lookup: Lookup) -> Iterator[Member]:
    try:
        for member in members:
            if manifest_format(member.name) is None:
                label, attributes = lookup.find(member.name)
                yield replace(member, label=label, attributes=attributes)
    finally:
        lookup.close()


_OPENERS: dict[str, Callable[[Settings, Storage, dict[str, Any], str], Source]] = {
    "archive": _open_archive,
    "folder": _open_folder,
    "objects": _open_objects,
    "urls": _open_manifest,
    "manifest": _open_manifest,
}
