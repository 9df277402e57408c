"""The client cannot import the service, so it lists the export formats itself."""

from typing import get_args

from app.core.exports.formats import FormatName
from temi_client.resources.jobs import ExportFormat


def test_the_client_has_every_export_format() -> None:
    assert get_args(ExportFormat) == get_args(FormatName)
