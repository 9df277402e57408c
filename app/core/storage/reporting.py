"""Files that report when they are read: an upload asks for the next part when one was sent."""

import io
from typing import TYPE_CHECKING

from app.core.activity import report_activity

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class ReportingFile(io.FileIO):
    def read(self, size: int | None = -1, /) -> bytes | None:
        report_activity()
        return super().read(size)

    def readinto(self, buffer: "WriteableBuffer", /) -> int | None:
        report_activity()
        return super().readinto(buffer)


class ReportingBytes(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        report_activity()
        return super().read(size)
