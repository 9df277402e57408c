"""What can be known of a source at once, so that the sender hears of it in the answer."""

from typing import Any

from app.core.datasets.archives import check_archive, is_checked_at_once
from app.core.datasets.sources.folders import check_folder
from app.core.datasets.sources.manifests import read_entries
from app.core.datasets.sources.objects import check_object_url
from app.core.datasets.sources.opening import check_entry, check_own_manifest
from app.core.datasets.sources.urls import is_url
from app.core.platform.errors import DatasetEmpty, ManifestInvalid
from app.core.runtime import Runtime


def check_source(runtime: Runtime, source: dict[str, Any]) -> None:
    """Completes the source with what the job has to know of it."""
    settings = runtime.settings
    match source["type"]:
        case "archive":
            path = runtime.storage.path(source["key"])
            check_archive(path, runtime.archive_limits)
            if source["labels_from"] == "manifest" and is_checked_at_once(path):
                check_own_manifest(runtime, source)
        case "folder":
            source["path"] = check_folder(source["path"], settings.source_folders)
        case "objects":
            check_object_url(source["url"], settings.source_buckets)
        case "urls" | "manifest":
            source["rows"] = _check_entries(runtime, source)


def _check_entries(runtime: Runtime, source: dict[str, Any]) -> int:
    """The number of rows, each of which names something that may be read."""
    settings, rows, addresses = runtime.settings, 0, 0
    with runtime.storage.path(source["key"]).open("rb") as file:
        for entry in read_entries(file, source["format"]):
            check_entry(runtime, entry, only_urls=source["type"] == "urls")
            rows += 1
            addresses += is_url(entry.path)
            if rows > settings.max_archive_members:
                raise ManifestInvalid(f"More than {settings.max_archive_members:,} lines.")
            if addresses > settings.max_urls:
                raise ManifestInvalid(f"More than {settings.max_urls:,} web addresses.")
    if rows == 0:
        raise DatasetEmpty("The list names no images.")
    return rows
