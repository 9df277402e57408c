"""Downloads weights into the weights folder, from the repository that a library would use."""

import hashlib
import io
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
from huggingface_hub.errors import EntryNotFoundError, GatedRepoError
from huggingface_hub.utils.tqdm import tqdm

from temi.backbones.catalog import BackboneName, check_backbone, parse_name
from temi.backbones.hub import hub_address
from temi.backbones.load import load_backbone
from temi.errors import UnknownBackbone, WeightsUnavailable

# In the order in which the libraries look for them.
_FILES = {
    "timm": ("model.safetensors", "pytorch_model.bin"),
    "open_clip": ("open_clip_model.safetensors", "open_clip_pytorch_model.bin"),
}
_SHA256_LENGTH = 64  # of an ETag that is the hash of the file; others are hashes of Git

Progress = Callable[[int, int], None]
"""Called with the bytes received so far and all of them."""


@dataclass(frozen=True, kw_only=True)
class FetchedWeights:
    name: str
    path: Path
    bytes: int
    sha256: str
    repository: str | None  # None: the file was there already


def fetch_weights(
    name: str, weights_dir: Path, *, progress: Progress | None = None
) -> FetchedWeights:
    """Download the weights of a backbone, unless their file exists, and check that they load.

    The file gets its name when it is complete. Raises UnknownBackbone or WeightsUnavailable.
    """
    parsed = _parse_fetchable(name, weights_dir)
    existing = parsed.local_file(weights_dir)
    if existing is not None:
        return _describe(name, existing, repository=None)
    repository, files = _hosted(parsed, weights_dir)
    weights_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=weights_dir, prefix=".fetch-") as folder:
        try:
            partial = _download(repository, files, Path(folder), progress)
        except WeightsUnavailable:
            raise
        except Exception as error:  # the client of the hub raises errors of several libraries
            raise _not_fetched(name, repository, weights_dir, error) from error
        load_backbone(f"{name}@{partial}", device="cpu")
        target = weights_dir / f"{parsed.file_stem}{partial.suffix}"
        partial.replace(target)
    return _describe(name, target, repository=repository)


def _parse_fetchable(name: str, weights_dir: Path) -> BackboneName:
    parsed = parse_name(name)
    if parsed.path is not None:
        raise UnknownBackbone(f"{name} names a file: to fetch weights, leave out the '@' and path")
    if parsed.embedded is not None:
        raise WeightsUnavailable(
            f"there is nothing to fetch: the weights of {name} are installed as the Python package "
            f"{parsed.embedded.distribution}"
        )
    if parsed.named is not None and not parsed.named.hosted:
        raise WeightsUnavailable(
            f"no repository has the weights of {name}: {parsed.advice(weights_dir)}"
        )
    check_backbone(name, weights_dir)
    return parsed


def _hosted(parsed: BackboneName, weights_dir: Path) -> tuple[str, tuple[str, ...]]:
    """Return the repository of the weights, and the files that may contain them, best first."""
    repository, file = _timm_file(parsed) if parsed.source == "timm" else _open_clip_file(parsed)
    if not repository:
        raise WeightsUnavailable(
            f"{parsed.source} downloads the weights of {parsed.file_stem} from another place than "
            f"the Hugging Face Hub: {parsed.advice(weights_dir)}"
        )
    return repository, (file,) if file else _FILES[parsed.source]


def _timm_file(parsed: BackboneName) -> tuple[str | None, str | None]:
    import timm

    config: Any = timm.get_pretrained_cfg(parsed.model)
    return config.hf_hub_id, config.hf_hub_filename


def _open_clip_file(parsed: BackboneName) -> tuple[str | None, str | None]:
    import open_clip

    config = open_clip.get_pretrained_cfg(parsed.model, parsed.pretrained or "")
    repository, _, file = config.get("hf_hub", "").rpartition("/")
    return repository, file


def _download(
    repository: str, files: tuple[str, ...], folder: Path, progress: Progress | None
) -> Path:
    """Download the first of the files that the repository has; checks its hash."""
    for file in files:
        try:
            found = get_hf_file_metadata(hf_hub_url(repository, file))
        except EntryNotFoundError:
            continue
        path = Path(
            hf_hub_download(
                repository,
                file,
                revision=found.commit_hash,
                local_dir=folder,
                tqdm_class=_bar_of(progress, found.size),
            )
        )
        etag = found.etag or ""
        if len(etag) == _SHA256_LENGTH and etag != (received := _sha256(path)):
            raise WeightsUnavailable(
                f"{file} of {repository} arrived damaged: its SHA-256 is {received}, and should be "
                f"{etag}; try again"
            )
        return path
    raise WeightsUnavailable(f"{hub_address()}/{repository} has none of {', '.join(files)}")


def _bar_of(progress: Progress | None, size: int | None) -> type[tqdm]:
    """Return a class of progress bars that draw nothing and call ``progress`` instead."""

    class SilentBar(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            shown = {**options, "disable": False, "file": io.StringIO()}
            super().__init__(*args, **shown)  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> bool | None:
            drawn: bool | None = super().update(n)
            if progress is not None:
                progress(int(self.n), size or 0)
            return drawn

    return SilentBar


def _not_fetched(
    name: str, repository: str, weights_dir: Path, error: Exception
) -> WeightsUnavailable:
    if isinstance(error, GatedRepoError):
        return WeightsUnavailable(
            f"{repository} is open only to accounts that accept its license: accept it at "
            f"{hub_address()}/{repository}, then set HF_TOKEN to a token of that account"
        )
    reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return WeightsUnavailable(
        f"the weights of {name} could not be fetched from {hub_address()}/{repository}: {reason}. "
        "Set HF_ENDPOINT if the network has a mirror of the hub; or run this command on a machine "
        f"with a network and copy the file into {weights_dir}; or "
        f"{parse_name(name).advice(weights_dir)}"
    )


def _describe(name: str, path: Path, *, repository: str | None) -> FetchedWeights:
    return FetchedWeights(
        name=name,
        path=path,
        bytes=path.stat().st_size,
        sha256=_sha256(path),
        repository=repository,
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
