"""Limits of images and archives, and the sources that datasets may be read from."""

from pydantic import Field
from pydantic_settings import BaseSettings

from app.core.platform.settings.types import Folders, GiB, KiB, MiB, Names


class IngestSettings(BaseSettings):
    max_image_bytes: int = Field(
        default=100 * MiB, gt=0, description="Maximum size of an image file."
    )
    max_image_pixels: int = Field(
        default=50_000_000, gt=0, description="Maximum pixels of an image, by its header."
    )
    decode_seconds: float = Field(
        default=10.0,
        gt=0,
        description="Maximum CPU time to decode one image; then its process is killed and the "
        "image is refused. A photo of 50 megapixels takes one or two seconds.",
    )
    decode_bytes: int = Field(
        default=300 * MiB,
        ge=16 * MiB,
        description="Maximum memory to decode one image, besides its file. Enough for 50 "
        "megapixels of JPEG, PNG, TIFF, BMP, GIF or HEIF, 35 of AVIF and 19 of WebP.",
    )
    ingest_ahead_bytes: int = Field(
        default=64 * MiB,  # besides the member that is being read and the images being decoded
        gt=0,
        description="Bytes of images that an ingest reads before they are decoded.",
    )
    max_bad_fraction: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Share of unreadable images above which an ingest fails.",
    )
    max_archive_members: int = Field(
        default=5_000_000, gt=0, description="Maximum number of members of an archive."
    )
    max_archive_ratio: float = Field(
        default=100.0, gt=1, description="Maximum ratio of unpacked bytes to the archive's size."
    )
    max_archive_name_bytes: int = Field(
        default=64 * KiB,  # what a zip can hold; no file system has paths of more than 4 KiB
        gt=0,
        description="Maximum length of a member's name; an archive with a longer one is refused.",
    )
    max_archive_header_bytes: int = Field(
        default=1 * MiB,  # room for the attributes that macOS and SELinux put there
        ge=4 * KiB,
        description="Maximum size of the headers of one member of a tar.",
    )
    max_archive_entry_bytes: int = Field(
        default=4 * KiB,  # the usual entry has about 100
        ge=64,
        description="Maximum average size of an entry in a zip's directory.",
    )
    max_archive_window_bytes: int = Field(
        default=128 * MiB,  # `xz -9` takes 65 MiB, `zstd --long` 128 MiB
        ge=8 * MiB,
        description="Maximum memory for the window of a tar.xz or tar.zst.",
    )
    max_name_bytes: int = Field(
        default=1 * KiB,  # a page of 1,000 rows stays at about a megabyte
        ge=64,
        description="Maximum length of an image's name or label; a longer one is truncated.",
    )
    max_attributes_bytes: int = Field(
        default=8 * KiB,  # a page of 1,000 rows stays below ten megabytes
        ge=64,
        description="Maximum size, as JSON, of the attributes that a manifest gives one image; "
        "larger ones are omitted, with a note.",
    )
    max_model_bytes: int = Field(
        default=8 * GiB, gt=0, description="Maximum size of an imported model file."
    )

    source_folders: Folders = Field(
        default=(),
        description="Folders, comma-separated, that datasets may be read from; empty: none.",
    )
    source_buckets: Names = Field(
        default=(),
        description="`s3://bucket/prefix`, comma-separated, that datasets may be read from; "
        "empty: none.",
    )
    source_urls: bool = Field(
        default=False, description="Allow datasets to be read from public web URLs."
    )
    max_urls: int = Field(default=10_000, gt=0, description="Maximum number of URLs of a dataset.")
    url_seconds: float = Field(default=30.0, gt=0, description="Timeout to fetch one URL.")
