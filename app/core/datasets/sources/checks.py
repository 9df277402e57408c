"""Checks of a source that are fast enough for the request."""

from typing import Any

from app.core.datasets.archives import ArchiveLimits, check_archive, has_small_directory
from app.core.datasets.sources.folders import check_folder
from app.core.datasets.sources.manifests import read_entries
from app.core.datasets.sources.objects import check_object_url
from app.core.datasets.sources.opening import check_entry, check_own_manifest
from app.core.datasets.sources.urls import is_url
from app.core.platform.errors import DatasetEmpty, ManifestInvalid
from app.core.platform.settings import Settings
from app.core.storage import Storage


def check_source(settings: Settings, storage: Storage, source: dict[str, Any]) -> None:
    """Raises an error for a bad source; adds what the job needs to `source`."""
    match source["type"]:
        case "archive":
            path = storage.path(source["key"])
            check_archive(path, ArchiveLimits.of(settings))
            if source["labels_from"] == "manifest" and has_small_directory(path):
                check_own_manifest(settings, storage, source)
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
            check_entry(settings, entry, only_urls=source["type"] == "urls")
            rows += 1
            urls += is_url(entry.path)
            if rows > settings.max_archive_members:
                raise ManifestInvalid(f"More than {settings.max_archive_members:,} lines.")
            if urls > settings.max_urls:
                raise ManifestInvalid(f"More than {settings.max_urls:,} URLs (TEMI_MAX_URLS).")
    if rows == 0:
        raise DatasetEmpty("The manifest lists no images.")
    return rows
