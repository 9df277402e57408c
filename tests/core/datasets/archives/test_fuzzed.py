"""A damaged archive or its damaged members are refused; no other error is raised."""

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.datasets.archives import check_archive, read_members
from app.core.platform.errors import ArchiveRejected, ImageRejected
from tests.core.datasets.archives.archive_files import LIMITS
from tests.images import jpeg_bytes, tar_of, zip_of

_FILES = {"a/one.jpg": jpeg_bytes("red"), "a/two.jpg": jpeg_bytes("blue"), "three.txt": b"hello"}
_SAMPLES = {
    "zip": zip_of(_FILES),
    "tar": tar_of(_FILES),
    "tar.gz": tar_of(_FILES, compression="gz"),
    "tar.xz": tar_of(_FILES, compression="xz"),
}
_LIMITS = replace(LIMITS, max_members=10, max_member_bytes=100_000)
_fuzz = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def _read(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        path = Path(file.name)
        path.write_bytes(data)
        with suppress(ArchiveRejected):
            check_archive(path, _LIMITS)
        with suppress(ArchiveRejected):
            for member in read_members(path, _LIMITS):
                member.name.encode()  # every name can be stored
                with suppress(ImageRejected):
                    member.read()


@pytest.mark.parametrize("kind", _SAMPLES)
@_fuzz
@given(data=st.data())
def test_a_few_changed_bytes(kind: str, data: st.DataObject) -> None:
    sample = bytearray(_SAMPLES[kind])
    for _ in range(data.draw(st.integers(1, 3))):
        sample[data.draw(st.integers(0, len(sample) - 1))] = data.draw(st.integers(0, 255))
    _read(bytes(sample))


@pytest.mark.parametrize("kind", _SAMPLES)
@_fuzz
@given(data=st.data())
def test_a_truncated_archive(kind: str, data: st.DataObject) -> None:
    _read(_SAMPLES[kind][: data.draw(st.integers(0, len(_SAMPLES[kind]) - 1))])
