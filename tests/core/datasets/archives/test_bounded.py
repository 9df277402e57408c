"""No archive takes more than the documented memory and time."""

import zipfile
from typing import cast

import pytest

from tests.bounded import call_bounded
from tests.core.datasets.archives import attacks
from tests.core.datasets.archives.archive_files import Write

MiB = 1024 * 1024
_TOO_MUCH = "archive_too_large: "


def read(data: bytes, write: Write) -> list[str]:
    path = write(data)
    return cast(
        list[str], call_bounded("tests.core.datasets.archives.reading_steps:read", str(path))
    )


def check(data: bytes, write: Write) -> str:
    path = write(data)
    return cast(str, call_bounded("tests.core.datasets.archives.reading_steps:check", str(path)))


@pytest.mark.parametrize("kind", ["tar", "gz", "zst"])
@pytest.mark.parametrize("name", ["__MACOSX/skipped", "a.png"])
def test_a_member_that_claims_more_bytes_than_the_archive_has(
    write: Write, kind: str, name: str
) -> None:
    """Skipping that many bytes would take years."""
    (error,) = read(attacks.PACKERS[kind](attacks.claiming(10**18, name)), write)
    if kind == "tar":
        assert error.startswith("archive_invalid: ")
        assert "1,000,000,000,000,000,000 bytes" in error
    else:
        assert error.startswith(_TOO_MUCH)


def test_a_size_of_many_digits(write: Write) -> None:
    data = attacks.pax(attacks.pax_record("size", b"9" * 5000)) + attacks.tar_header("a", 0)
    (error,) = read(data, write)
    assert error.startswith("archive_invalid: ")


@pytest.mark.parametrize("kind", ["tar", "xz"])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lambda: attacks.long_name(13 * MiB), id="GNU's long name"),
        pytest.param(lambda: attacks.long_pax(18 * MiB), id="a long pax record"),
        pytest.param(lambda: attacks.long_pax(18 * MiB, "path"), id="a long path"),
        pytest.param(lambda: attacks.many_pax(20_000), id="many pax headers"),
        pytest.param(lambda: attacks.sparse_map(30_000), id="a long map of holes"),
    ],
)
def test_headers_have_a_limit(write: Write, kind: str, data: object) -> None:
    (error,) = read(attacks.PACKERS[kind](data()), write)  # type: ignore[operator]
    assert error.startswith(_TOO_MUCH)
    assert "TEMI_MAX_ARCHIVE_HEADER_BYTES" in error


@pytest.mark.parametrize("kind", attacks.PACKERS)
def test_headers_have_a_limit_in_every_compression(write: Write, kind: str) -> None:
    (error,) = read(attacks.PACKERS[kind](attacks.long_pax(8 * MiB)), write)
    assert "TEMI_MAX_ARCHIVE_HEADER_BYTES" in error


@pytest.mark.parametrize("size", [70_000, 900_000])
def test_names_have_a_limit(write: Write, size: int) -> None:
    (error,) = read(attacks.long_name(size), write)
    assert error.startswith(_TOO_MUCH)
    assert "TEMI_MAX_ARCHIVE_NAME_BYTES" in error


def test_only_the_sparse_member_is_refused(write: Write) -> None:
    pictured = attacks.tar_header("b.png", 3) + attacks.padded(b"abc") + bytes(1024)
    for data in (attacks.sparse_size(10**15), attacks.sparse_map(1)):
        error = read(data[:-1024] + pictured, write)
        assert error == [
            "image_undecodable: It is a sparse file; create the tar without --sparse.",
            "3 bytes",
        ]


@pytest.mark.parametrize(
    ("method", "called"), [(zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "LZMA")]
)
def test_a_zip_with_another_compression(write: Write, method: int, called: str) -> None:
    data = attacks.zip_bomb(method, 512 * MiB)
    assert len(data) < 100_000
    expected = (
        f"archive_invalid: The member 'manifest.csv' of the zip is compressed with {called}; "
        "members must be stored or deflated."
    )
    assert check(data, write) == expected
    assert read(data, write) == [expected]


def test_deflate_64_is_refused(write: Write) -> None:
    data = bytearray(attacks.zip_bomb(zipfile.ZIP_DEFLATED, MiB))
    data[data.index(b"PK\x01\x02") + 10] = 9
    assert "compressed with deflate64" in check(bytes(data), write)


def test_deflate_of_a_forged_size(write: Write) -> None:
    """A gigabyte with a directory size of ten bytes: only the first block is unpacked."""
    data = bytearray(attacks.zip_bomb(zipfile.ZIP_DEFLATED, 1024 * MiB))
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (10).to_bytes(4, "little")
    (error,) = read(bytes(data), write)
    assert (
        error
        == "image_undecodable: It cannot be unpacked: it has more than the 10 bytes that it claims"
    )


def test_entries_that_unpack_the_same_bytes(write: Write) -> None:
    """Kilobytes that unpack to terabytes, one member after another within its limits."""
    error = read(attacks.overlapping_zip(60_000, 50 * MiB), write)
    assert error[-1].startswith(_TOO_MUCH)
    assert "100 times its size" in error[-1]


def test_a_directory_behind_a_count_of_one(write: Write) -> None:
    data = attacks.zip_of_entries(1_500_000, claimed=1)
    for error in (check(data, write), *read(data, write)):
        assert error.startswith(_TOO_MUCH)
        assert "TEMI_MAX_ARCHIVE_ENTRY_BYTES" in error


def test_a_directory_with_more_entries_than_it_claims(write: Write) -> None:
    error = check(attacks.zip_of_entries(1000, claimed=999), write)
    assert error.startswith("archive_invalid: ")
    assert "1,000 entries, and the end record claims 999" in error


def test_a_directory_that_claims_more_than_the_file(write: Write) -> None:
    data = bytearray(attacks.zip_of_entries(10))
    data[-10:-6] = (2**32 - 2).to_bytes(4, "little")
    error = check(bytes(data), write)
    assert error.startswith("archive_invalid: ")
    assert "more than the file has" in error


def test_a_zip_of_a_million_photos_is_read(write: Write) -> None:
    """Memory does not grow with the number of members."""
    path = write(attacks.zip_of_entries(1_000_000))
    assert call_bounded("tests.core.datasets.archives.reading_steps:count", str(path)) == 1_000_000


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(attacks.xz_of_window(2**32 - 1), id="xz"),
        pytest.param(attacks.zstd_of_window(31), id="zstd"),
    ],
)
def test_a_window_of_gigabytes(write: Write, data: bytes) -> None:
    (error,) = read(data, write)
    assert error.startswith(_TOO_MUCH)
    assert "TEMI_MAX_ARCHIVE_WINDOW_BYTES" in error


def test_the_window_of_the_strongest_usual_setting(write: Write) -> None:
    assert read(attacks.xz_of_window(64 * MiB), write) == ["0 bytes"]


@pytest.mark.parametrize(
    "data",
    [
        *(
            pytest.param(lambda kind=kind: attacks.empty_streams(kind, 64 * MiB), id=kind)
            for kind in ("gz", "bz2", "xz", "zst")
        ),
        pytest.param(lambda: attacks.gzip_of_long_name(512 * MiB), id="a name in gzip's header"),
        pytest.param(
            lambda: attacks.PACKERS["xz"](b"") + bytes(512 * MiB), id="padding between streams"
        ),
    ],
)
def test_compressed_data_that_unpacks_to_nothing(write: Write, data: object) -> None:
    (error,) = read(data(), write)  # type: ignore[operator]
    assert error.startswith("archive_invalid: ")
    assert "compressed bytes of the archive unpack to only" in error
