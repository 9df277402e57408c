"""Bodies of uploads: read from disk while they are sent, never held in memory."""

import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from temi_client.transport import Body

# Each part holds an open file; more images than this travel as one archive.
MAX_PARTS = 100
_FIRST_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def archive_body(path: Path) -> Body:
    @contextmanager
    def open_archive() -> Iterator[dict[str, Any]]:
        with path.open("rb") as handle:
            yield {
                "content": handle,
                "headers": {
                    "Content-Type": _media_type(path),
                    # Without a length the upload would be chunked and its size unknown.
                    "Content-Length": str(path.stat().st_size),
                },
            }

    return open_archive


def multipart_body(paths: Sequence[Path]) -> Body:
    @contextmanager
    def open_files() -> Iterator[dict[str, Any]]:
        with ExitStack() as stack:
            yield {
                "files": [
                    ("files", (path.name, stack.enter_context(path.open("rb")))) for path in paths
                ]
            }

    return open_files


@contextmanager
def upload_body(source: Path | Sequence[Path]) -> Iterator[Body]:
    """The body for an archive, a folder or a list of images."""
    if not isinstance(source, Path):
        if len(source) <= MAX_PARTS:
            yield multipart_body(source)
        else:
            with _packed(_unique_names(source)) as packed:
                yield archive_body(packed)
    elif source.is_dir():
        with _packed(_folder_names(source)) as packed:
            yield archive_body(packed)
    else:
        yield archive_body(source)


def default_name(source: Path | Sequence[Path]) -> str:
    if not isinstance(source, Path):
        return source[0].resolve().parent.name or "images"
    resolved = source.resolve()
    if resolved.is_dir():
        return resolved.name or "images"
    return resolved.name.removesuffix(".gz").rsplit(".", 1)[0]


@contextmanager
def _packed(files: Iterable[tuple[Path, str]]) -> Iterator[Path]:
    """A temporary zip; stored, because images are compressed already."""
    with tempfile.TemporaryDirectory(prefix="temi-upload-") as folder:
        packed = Path(folder) / "images.zip"
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED, strict_timestamps=False) as archive:
            for path, name in files:
                # A fixed date, so that the same images make the same bytes.
                entry = zipfile.ZipInfo(name, _FIRST_ZIP_DATE)
                entry.file_size = path.stat().st_size
                with path.open("rb") as source, archive.open(entry, "w") as target:
                    while block := source.read(1 << 20):
                        target.write(block)
        yield packed


def _folder_names(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in relative.parts)
        if path.is_file() and not hidden:
            yield path, relative.as_posix()


def _unique_names(paths: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    taken: set[str] = set()
    for index, path in enumerate(paths):
        name = path.name if path.name not in taken else f"{index:06d}_{path.name}"
        taken.add(name)
        yield path, name


def _media_type(path: Path) -> str:
    name = path.name.lower()
    if name.endswith(".zip"):
        return "application/zip"
    if name.endswith((".tar.gz", ".tgz")):
        return "application/gzip"
    return "application/x-tar" if name.endswith(".tar") else "application/octet-stream"
