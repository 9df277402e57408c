"""Request bodies of uploads, streamed from disk."""

import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from temi_client.downloads import Progress
from temi_client.transport import Body

# Each part holds an open file; more images than this are sent as one archive.
MAX_PARTS = 100
_BLOCK = 1 << 20
_FIRST_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
_MEDIA_TYPES = {
    ".zip": "application/zip",
    ".temi": "application/zip",
    ".tar.gz": "application/gzip",
    ".tgz": "application/gzip",
    ".tar.zst": "application/zstd",
    ".tzst": "application/zstd",
    ".tar": "application/x-tar",
    ".csv": "text/csv",
    ".jsonl": "application/x-ndjson",
    ".ndjson": "application/x-ndjson",
}
_IMAGES = (
    *(".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp"),
    *(".tif", ".tiff", ".heic", ".heif", ".avif"),
)
MANIFEST_TYPES = frozenset({"text/csv", "application/x-ndjson"})


def file_body(path: Path, progress: Progress | None = None) -> Body:
    """Returns a body with the content of one file."""

    @contextmanager
    def open_file() -> Iterator[dict[str, Any]]:
        size = path.stat().st_size
        with path.open("rb") as handle:
            yield {
                "content": _blocks(handle, size, progress),
                "headers": {
                    "Content-Type": media_type(path),
                    # Without a length the upload would be chunked and its size unknown.
                    "Content-Length": str(size),
                },
            }

    return open_file


def multipart_body(paths: Sequence[Path], progress: Progress | None = None) -> Body:
    """Returns a multipart form with one part per file."""

    @contextmanager
    def open_files() -> Iterator[dict[str, Any]]:
        counter = _ByteCounter(sum(path.stat().st_size for path in paths), progress)
        with ExitStack() as stack:
            files = [stack.enter_context(path.open("rb")) for path in paths]
            yield {
                "files": [
                    ("files", (path.name, _CountedFile(file, counter)))
                    for path, file in zip(paths, files, strict=True)
                ]
            }

    return open_files


@contextmanager
def prepare_images(source: Path | Sequence[Path]) -> Iterator[Path | Sequence[Path]]:
    """Yields an archive's path, or up to `MAX_PARTS` images; packs folders and longer lists."""
    if not isinstance(source, Path):
        if len(source) <= MAX_PARTS:
            yield source
        else:
            with _zipped(_unique_names(source)) as archive:
                yield archive
    elif source.is_dir():
        with _zipped(_folder_names(source)) as archive:
            yield archive
    else:
        yield source


def default_name(source: Path | Sequence[Path]) -> str:
    """Returns the folder's name, or the archive's without its suffixes."""
    if not isinstance(source, Path):
        return source[0].resolve().parent.name or "images"
    resolved = source.resolve()
    if resolved.is_dir():
        return resolved.name or "images"
    return _without(resolved.name, ".gz", ".zst", ".bz2", ".xz").rsplit(".", 1)[0]


def is_image(path: Path) -> bool:
    """Decides by the file's name; any other single file is sent as an archive."""
    return path.is_file() and path.name.lower().endswith(_IMAGES)


def media_type(path: Path) -> str:
    name = path.name.lower()
    found = (kind for suffix, kind in _MEDIA_TYPES.items() if name.endswith(suffix))
    return next(found, "application/octet-stream")


def _blocks(handle: IO[bytes], size: int, progress: Progress | None) -> Iterator[bytes]:
    sent = 0
    while block := handle.read(_BLOCK):
        yield block
        sent += len(block)
        if progress is not None:
            progress(sent, size)


class _ByteCounter:
    def __init__(self, total: int, progress: Progress | None) -> None:
        self._done = 0
        self._total = total
        self._progress = progress

    def add(self, count: int) -> None:
        self._done += count
        if self._progress is not None and count:
            self._progress(self._done, self._total)


class _CountedFile:
    """A file that counts the bytes read; it has only the methods that httpx calls."""

    def __init__(self, file: IO[bytes], counter: _ByteCounter) -> None:
        self._file = file
        self._counter = counter

    def fileno(self) -> int:
        return self._file.fileno()

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self._counter.add(len(block))
        return block


@contextmanager
def _zipped(files: Iterable[tuple[Path, str]]) -> Iterator[Path]:
    """Yields a temporary zip file; not compressed, because images already are."""
    with tempfile.TemporaryDirectory(prefix="temi-upload-") as folder:
        zip_path = Path(folder) / "images.zip"
        with zipfile.ZipFile(zip_path, "w", zipfile.ZIP_STORED, strict_timestamps=False) as archive:
            for path, name in files:
                # A fixed date, so that the same images give the same bytes.
                entry = zipfile.ZipInfo(name, _FIRST_ZIP_DATE)
                entry.file_size = path.stat().st_size
                with path.open("rb") as source, archive.open(entry, "w") as target:
                    while block := source.read(_BLOCK):
                        target.write(block)
        yield zip_path


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


def _without(name: str, *suffixes: str) -> str:
    found = (name.removesuffix(suffix) for suffix in suffixes if name.endswith(suffix))
    return next(found, name)
