"""For any bytes, decoding either works or raises ImageRejected."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.datasets.decoding.headers import DecodeLimits
from app.core.datasets.images import MEDIA_TYPES, decode_image
from app.core.platform.errors import ImageRejected
from benchmarks.fuzzed_images import fuzz
from tests.images import image_bytes

# Pillow warns about files that it then reads; outside of tests, warnings are not errors.
pytestmark = pytest.mark.filterwarnings("ignore")
_SAMPLES = {format_: image_bytes(format_, (90, 120, 30), (9, 7)) for format_ in MEDIA_TYPES}
_HEADS = [b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"II*\x00", b"RIFF    WEBP"]
_HEADS += [_SAMPLES[format_][:40] for format_ in ("HEIF", "AVIF")]
_SMALL = 1_000_000  # pixels: a header that claims more is refused before memory is taken
_fuzz = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def _decode(data: bytes) -> None:
    with suppress(ImageRejected):
        decoded = decode_image(data, limits=DecodeLimits(pixels=_SMALL))
        assert decoded.image.mode == "RGB"
        assert decoded.image.width * decoded.image.height <= _SMALL


@_fuzz
@given(head=st.sampled_from(_HEADS), rest=st.binary(max_size=300))
def test_any_bytes_are_decoded_or_refused(head: bytes, rest: bytes) -> None:
    _decode(head + rest)


@pytest.mark.parametrize("format_", _SAMPLES)
@_fuzz
@given(data=st.data())
def test_one_changed_byte(format_: str, data: st.DataObject) -> None:
    sample = bytearray(_SAMPLES[format_])
    position = data.draw(st.integers(0, len(sample) - 1))
    sample[position] = data.draw(st.integers(0, 255))
    _decode(bytes(sample))


@pytest.mark.parametrize("format_", _SAMPLES)
def test_every_truncation(format_: str) -> None:
    sample = _SAMPLES[format_]
    for length in range(len(sample)):
        _decode(sample[:length])


def test_a_thousand_damaged_files() -> None:
    """The short form of benchmarks/fuzzed_images.py."""
    found = fuzz(1_000, seed=1)
    assert found["refused"] + found["read"] == 1_000
    assert found["slow"] == 0
