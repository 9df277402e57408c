"""Where timm and open_clip keep the weights that they download; does not load torch."""

from pathlib import Path

from huggingface_hub import constants

_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth")


def hub_address() -> str:
    """The address that weights are downloaded from; ``HF_ENDPOINT`` sets it."""
    return str(constants.ENDPOINT)


def cache_folder() -> Path:
    return Path(constants.HF_HUB_CACHE)


def cached_weights(repository: str, *, of_open_clip: bool) -> Path | None:
    """Return the weights of the repository in the cache, if there are any.

    A repository may have the same model in two files, one for each library.
    """
    folder = cache_folder() / f"models--{repository.replace('/', '--')}" / "snapshots"
    for path in sorted(folder.glob("*/*")):
        fits = path.name.startswith("open_clip") == of_open_clip
        if fits and path.suffix in _SUFFIXES and path.is_file():
            return path
    return None
