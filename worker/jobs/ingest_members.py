"""The members of a source: reads, decodes and stores them, and returns a row for each.

Small images are handled in groups. One hop to a thread and one to a decoder process then serve
many images: alone, either costs more than the image.
"""

import hashlib
import json
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from app.core.datasets.images import ImageFacts
from app.core.datasets.rows import folder_label
from app.core.datasets.sources.base import Member, Source, cut_text, is_system_file
from app.core.datasets.sources.file_kinds import skip_reason
from app.core.platform.activity import reporting
from app.core.platform.errors import ImageRejected
from app.core.platform.settings import Settings
from app.core.platform.streams import batched
from app.core.storage import Batch, store_blob
from worker.context import JobContext
from worker.stages.prefetch import BytesAhead, prefetch

_GROUP_FILES, _GROUP_BYTES = 64, 256 * 1024
_MAX_DETAIL = 500  # characters of an issue's text

Row = dict[str, Any]


@dataclass(frozen=True)
class _Read:
    """A member's bytes, or the error of reading them, or why it is skipped."""

    member: Member
    data: bytes = b""
    error: ImageRejected | None = None
    skipped: str | None = None


@dataclass(frozen=True)
class _Group:
    reads: list[_Read]

    @property
    def size(self) -> int:
        return sum(len(read.data) for read in self.reads)


def store_members(
    context: JobContext, source: Source, done: int, blobs: Batch
) -> Generator[list[Row], None, None]:
    """Yields rows in the order of the source. Sources other than archives are read in parallel."""
    first = first_position(context)

    def read_member(member: Member) -> _Read:
        return _read_member(member, only_images=source.only_images)

    # A resumed job skips what is done, which takes long in a large archive.
    members = (m for m in reporting(source.members) if first + m.position > done)
    if source.parallel_reads:

        def read_and_store(some: list[Member]) -> list[Row]:
            groups = _grouped(map(read_member, some))
            return [row for group in groups for row in _store_group(context, group, blobs)]

        some = batched(members, source.reads_together)
        return prefetch(read_and_store, some, threads=source.parallel_reads)
    ahead = BytesAhead(context.runtime.settings.ingest_ahead_bytes)

    def store(group: _Group) -> list[Row]:
        with ahead.released(group.size):
            return _store_group(context, group, blobs)

    return prefetch(
        store,
        (ahead.admitted(group, group.size) for group in _grouped(map(read_member, members))),
        threads=context.runtime.settings.threads,
    )


def first_position(context: JobContext) -> int:
    return int(context.job.config["first_position"])


def _grouped(reads: Iterable[_Read]) -> Iterator[_Group]:
    """Small files together, a large one alone."""
    group, size = list[_Read](), 0
    for read in reads:
        if group and (size + len(read.data) > _GROUP_BYTES or len(group) >= _GROUP_FILES):
            yield _Group(group)
            group, size = [], 0
        group.append(read)
        size += len(read.data)
    if group:
        yield _Group(group)


def _read_member(member: Member, *, only_images: bool) -> _Read:
    if only_images:
        return _read_image(member)
    if is_system_file(member.name):
        return _Read(member, skipped=skip_reason(member.name, None))
    read = _read_image(member)
    skipped = skip_reason(member.name, None if read.error else read.data)
    return read if skipped is None else _Read(member, skipped=skipped)


def _read_image(member: Member) -> _Read:
    try:
        return _Read(member, member.read())
    except ImageRejected as error:
        return _Read(member, error=error)


def _store_group(context: JobContext, group: _Group, blobs: Batch) -> list[Row]:
    images = [read.data for read in group.reads if read.error is None and read.skipped is None]
    found = iter(context.runtime.decoders.inspect_all(images) if images else [])
    rows = []
    for read in group.reads:
        if read.skipped is not None:
            position = first_position(context) + read.member.position
            rows.append({"position": position, "skipped": read.skipped})
        else:
            rows.append(_store_image(context, read, read.error or next(found), blobs))
    return rows


def _store_image(
    context: JobContext, read: _Read, found: ImageFacts | ImageRejected, blobs: Batch
) -> Row:
    """Returns the row of an image, or of an issue if it cannot be decoded."""
    member = read.member
    labels_from = context.job.config["source"]["labels_from"]
    details = member_details(member, context.runtime.settings, by_folder=labels_from == "folder")
    common = {
        "dataset_id": context.job.dataset_id,
        "position": first_position(context) + member.position,
        "name": details.name,
    }
    if isinstance(found, ImageRejected):
        detail = " ".join([found.detail[:_MAX_DETAIL], *details.notes])
        return common | {"code": found.code, "detail": detail}
    sha256 = hashlib.sha256(read.data).hexdigest()
    store_blob(context.runtime.storage, sha256, read.data, blobs)
    return common | {
        "sha256": sha256,
        "width": found.width,
        "height": found.height,
        "format": found.format,
        "bytes": len(read.data),
        "label": details.label,
        "attributes": details.attributes,
        "notes": [*found.notes, *details.notes],
    }


@dataclass(frozen=True)
class MemberDetails:
    """The name, label and attributes of a member, limited so that lists of rows stay small."""

    name: str
    label: str | None
    attributes: dict[str, Any]
    notes: list[str] = field(default_factory=list)  # on what was cut or left out


def member_details(member: Member, settings: Settings, *, by_folder: bool) -> MemberDetails:
    label, attributes = member.label, member.attributes
    if label is None and by_folder:
        label = folder_label(member.name)
    notes = [
        f"{what} cut: it has {len(text.encode()):,} bytes"
        for what, text in (("name", member.name), ("label", label or ""))
        if len(text.encode()) > settings.max_name_bytes
    ]
    if attributes and (size := len(json.dumps(attributes))) > settings.max_attributes_bytes:
        attributes = {}
        notes.append(f"attributes left out: they have {size:,} bytes")
    return MemberDetails(
        name=cut_text(member.name, settings.max_name_bytes),
        label=None if label is None else cut_text(label, settings.max_name_bytes),
        attributes=attributes,
        notes=notes,
    )
