"""Reads the images that tasks of other programs refer to: data URIs, our own links, public URLs."""

import base64
import binascii
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from urllib.parse import urlsplit

from app.core.datasets.queries import image_hashes
from app.core.datasets.sources.urls import Fetcher, check_url, is_url
from app.core.platform.db import Database
from app.core.platform.errors import ImageRejected, ImageUndecodable, UrlForbidden, UrlUnreachable
from app.core.platform.settings import Settings
from app.core.serving.admission import Reservation
from app.core.storage import Storage
from app.core.storage.keys import blob_key

_OWN_LINK = re.compile(r"/v1/images/(img_[0-9a-z]{1,36})/content")
_SECONDS = 60.0  # for all images of a request
_reading = ThreadPoolExecutor(8, thread_name_prefix="task-images")  # bounds the memory


class TaskImages:
    """Reads images for one tenant, with the limits of the URL source."""

    def __init__(self, settings: Settings, db: Database, storage: Storage, tenant: str) -> None:
        self._settings = settings
        self._db = db
        self._storage = storage
        self._tenant = tenant
        self._deadline = time.monotonic() + _SECONDS
        self._fetcher = Fetcher(max_bytes=settings.max_image_bytes, seconds=settings.url_seconds)

    def read(
        self, references: Sequence[str | ImageRejected], reservation: Reservation
    ) -> list[bytes | ImageRejected]:
        """The bytes in the order of the references; an error for each that cannot be read."""
        reservation.add(images=len(references) - 1)  # the first was reserved with the body
        own = [found for r in references if isinstance(r, str) and (found := _own_id(r))]
        with self._db.read() as session:
            hashes = image_hashes(session, self._tenant, own)

        def read_one(reference: str | ImageRejected) -> bytes | ImageRejected:
            if isinstance(reference, ImageRejected):
                return reference
            try:
                data = self._read(reference, hashes)
            except ImageRejected as error:
                return error
            reservation.add(bytes_=len(data))
            return data

        futures = [_reading.submit(read_one, reference) for reference in references]
        try:
            return [future.result() for future in futures]
        finally:  # none may add to a reservation that was released
            for future in futures:
                future.cancel()
            wait(futures)

    def _read(self, reference: str, hashes: Mapping[str, str]) -> bytes:
        if reference[:5].lower() == "data:":
            return _decode(reference)
        if (image_id := _own_id(reference)) is not None:
            return self._read_own(image_id, hashes)
        if not is_url(reference):
            raise UrlForbidden(
                f"{reference[:200]!r} is not a URL. Files that were uploaded to the other program "
                "cannot be read; use public URLs, data URIs or image links of this service."
            )
        check_url(reference, enabled=self._settings.source_urls)
        if time.monotonic() > self._deadline:
            raise UrlUnreachable(f"The images took longer than {_SECONDS:g} seconds; send fewer.")
        return self._fetcher.fetch(reference)

    def _read_own(self, image_id: str, hashes: Mapping[str, str]) -> bytes:
        if image_id not in hashes:
            raise UrlUnreachable(f"There is no image {image_id!r}.")
        try:
            return self._storage.read(blob_key(hashes[image_id]))
        except FileNotFoundError as error:
            raise UrlUnreachable(f"The bytes of image {image_id!r} are missing.") from error


def _own_id(reference: str) -> str | None:
    """The id of a link to an image of this service, under whatever host name."""
    if not is_url(reference) and not reference.startswith("/"):
        return None
    try:
        found = _OWN_LINK.fullmatch(urlsplit(reference).path)
    except ValueError:
        return None
    return found[1] if found else None


def _decode(uri: str) -> bytes:
    head, _, data = uri.partition(",")
    try:
        if head.lower().endswith(";base64"):
            return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        pass
    raise ImageUndecodable("The data URI is not in base64.")
