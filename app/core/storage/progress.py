"""Files that report when they are read: an upload asks for the next part when one was sent."""

import io
from typing import TYPE_CHECKING

from app.core.platform.activity import report_activity

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class ReportingFile(io.FileIO):
    """Unlike what a type checker thinks, one of a disk never answers with None."""

    def read(self, size: int | None = -1, /) -> bytes:
        report_activity()
        return super().read(size) or b""

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        report_activity()
        return super().readinto(buffer) or 0


class ReportingBytes(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        report_activity()
        return super().read(size)
