"""Reads the files of a multipart form one at a time.

Starlette's form parser keeps every file of a request open until the last one is read: ten thousand
small images would fill the memory or use up the file handles. Here a file is yielded as soon as it
is complete, and closed before the next one.
"""

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from tempfile import SpooledTemporaryFile
from typing import IO

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from app.core.platform.errors import InvalidRequest, TooManyParts
from app.core.storage import raise_if_full

_IN_MEMORY = 1024 * 1024  # per file; the rest is buffered on disk
_MAX_HEADER = 8 * 1024
_MAX_BOUNDARY = 70  # RFC 2046


@dataclass
class FilePart:
    filename: str
    file: IO[bytes]


@dataclass
class _Part:
    header: bytes = b""
    value: bytes = b""
    disposition: bytes = b""
    body: IO[bytes] = field(default_factory=lambda: SpooledTemporaryFile(_IN_MEMORY))  # noqa: SIM115


async def read_files(
    request: Request, body: AsyncIterator[bytes], *, max_files: int
) -> AsyncIterator[FilePart]:
    """Yields each file of the form, in a field of any name; plain fields are ignored."""
    _, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if not boundary or len(boundary) > _MAX_BOUNDARY:
        raise InvalidRequest(
            f"The boundary in the Content-Type must have 1 to {_MAX_BOUNDARY} characters; "
            f"it has {len(boundary or b'')}."
        )
    collector = _Collector()
    parser = MultipartParser(boundary, collector.callbacks())  # type: ignore[arg-type]
    count = 0
    try:
        async for chunk in body:
            parser.write(chunk)
            while (part := collector.take()) is not None:
                count += 1
                with part.file:
                    if count > max_files:
                        raise TooManyParts(
                            f"The form has more than {max_files} files; send the others in "
                            "another request."
                        )
                    yield part
    except FormParserError as error:
        raise InvalidRequest(f"The form is malformed: {error}") from error
    except OSError as error:
        raise_if_full(error)
        raise
    finally:
        collector.close()
    if collector.unfinished:
        raise InvalidRequest("The form ends in the middle of a file; send it again.")
    if count == 0:
        raise InvalidRequest.field("files", "send at least one file in the form field `files`")


class _Collector:
    """Collects the parser's callbacks into complete files."""

    def __init__(self) -> None:
        self._part: _Part | None = None
        self._ready: deque[FilePart] = deque()

    @property
    def unfinished(self) -> bool:
        return self._part is not None

    def callbacks(self) -> dict[str, object]:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_part_data": self._data,
            "on_part_end": self._end,
        }

    def take(self) -> FilePart | None:
        return self._ready.popleft() if self._ready else None

    def close(self) -> None:
        for part in self._ready:
            part.file.close()
        if self._part is not None:
            self._part.body.close()

    def _begin(self) -> None:
        self._part = _Part()

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        assert self._part is not None
        self._part.header = _check_header(self._part.header + data[start:end])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        assert self._part is not None
        self._part.value = _check_header(self._part.value + data[start:end])

    def _header_end(self) -> None:
        assert self._part is not None
        if self._part.header.lower() == b"content-disposition":
            self._part.disposition = self._part.value
        self._part.header = self._part.value = b""

    def _data(self, data: bytes, start: int, end: int) -> None:
        assert self._part is not None
        self._part.body.write(data[start:end])

    def _end(self) -> None:
        assert self._part is not None
        part, self._part = self._part, None
        name = _filename(part.disposition)
        if name is None:
            part.body.close()
            return
        part.body.seek(0)
        self._ready.append(FilePart(name, part.body))


def _filename(disposition: bytes) -> str | None:
    _, options = parse_options_header(disposition)
    name = options.get(b"filename")
    if name is None:
        return None
    return name.decode("utf-8", errors="replace").replace("\x00", "")


def _check_header(header: bytes) -> bytes:
    if len(header) > _MAX_HEADER:
        raise InvalidRequest(f"A part of the form has a header of more than {_MAX_HEADER:,} bytes.")
    return header
