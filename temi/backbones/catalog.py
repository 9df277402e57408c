"""The available backbones and the syntax of their names; does not load torch."""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from temi.backbones.embedded import EMBEDDED_BACKBONES, EmbeddedBackbone
from temi.backbones.hub import cached_weights
from temi.backbones.library_names import library_names
from temi.backbones.named import NAMED_BACKBONES, NamedBackbone
from temi.errors import UnknownBackbone, WeightsUnavailable

Source = Literal["embedded", "timm", "open_clip", "file"]

DEFAULT_BACKBONE = "efficientnet_lite0"
SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".pth.tar")

_FINETUNED = "+finetuned"
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LIBRARIES: dict[str, Source] = {"timm": "timm", "open_clip": "open_clip"}


@dataclass(frozen=True, kw_only=True)
class BackboneInfo:
    name: str
    source: Source  # where the weights come from
    description: str
    dim: int  # features per image
    available: bool
    hint: str | None  # how to make it available, or available offline


@dataclass(frozen=True, kw_only=True)
class BackboneName:
    """The parts of a backbone's name."""

    source: Source  # "file" never occurs here: a file belongs to a library's model
    model: str
    pretrained: str | None = None  # open_clip only
    path: Path | None = None
    named: NamedBackbone | None = None  # the backbone of a short name
    embedded: EmbeddedBackbone | None = None  # the backbone of an installed package

    def local_file(self, weights_dir: Path | None) -> Path | None:
        """Return the weights file of the name or in the weights folder, if there is one."""
        if self.path is not None:
            return self.path
        if weights_dir is None:
            return None
        candidates = (weights_dir / f"{self.file_stem}{suffix}" for suffix in SUFFIXES)
        return next((path for path in candidates if path.is_file()), None)

    def weights_file(self, weights_dir: Path | None) -> Path | None:
        """Return the file that would be loaded; None if it is missing, or in a library's cache."""
        if self.embedded is not None:
            return self.embedded.weights_file if self.embedded.installed else None
        file = self.local_file(weights_dir)
        return file if file is not None and file.is_file() else None

    def find_weights(self, weights_dir: Path | None) -> str | None:
        """Tell where the weights are on this machine; None if they would have to be downloaded."""
        if self.embedded is not None:
            return "installed with the service" if self.embedded.installed else None
        if find_spec(self.source) is None:
            return None
        file = self.local_file(weights_dir)
        if file is not None:
            return str(file) if self.path else f"{file.name} in the weights folder"
        repository, of_open_clip = self.hub_repository, self.source == "open_clip"
        if repository is None or cached_weights(repository, of_open_clip=of_open_clip) is None:
            return None
        return "in the cache of the Hugging Face Hub"

    @property
    def file_stem(self) -> str:
        if self.named is not None:
            return self.named.name
        return self.model if self.pretrained is None else f"{self.model}-{self.pretrained}"

    @property
    def hub_repository(self) -> str | None:
        """Return the repository that the library downloads from, if the name tells it."""
        if self.named is not None and self.source == "open_clip":
            return self.named.publisher.partition(" ")[0]
        has_tag = "." in self.model
        return f"timm/{self.model}" if self.source == "timm" and has_tag else None

    def advice(self, weights_dir: Path | None) -> str:
        """Tell where to put a weights file so that this backbone can be loaded offline."""
        folder = "the weights folder" if weights_dir is None else str(weights_dir)
        if self.named is None:
            return f"put its weights into {folder} as {self.file_stem}.safetensors (or .pth)"
        public_file = self.named.public_file
        suffix = next(suffix for suffix in SUFFIXES if public_file.endswith(suffix))
        return (
            f"download the public file {public_file} of {self.named.publisher} "
            f"and put it into {folder} as {self.file_stem}{suffix}"
        )


def parse_name(name: str) -> BackboneName:
    """Parse a name; raises UnknownBackbone if it matches none of the patterns."""
    embedded = EMBEDDED_BACKBONES.get(name)
    if embedded is not None:
        return BackboneName(source="embedded", model=name, embedded=embedded)
    start, at, path = name.partition("@")
    if at and not path:
        raise UnknownBackbone(f"unknown backbone {name!r}: no path follows the '@'")
    file = Path(path) if at else None
    named = NAMED_BACKBONES.get(start)
    if named is not None:
        return BackboneName(
            source=named.library,
            model=named.model,
            pretrained=named.pretrained,
            path=file,
            named=named,
        )
    library, _, rest = start.partition(":")
    model, slash, pretrained = rest.partition("/")
    source = _LIBRARIES.get(library)
    usable = _MODEL.fullmatch(model) and (not slash or _MODEL.fullmatch(pretrained))
    if source is None or not usable:
        raise UnknownBackbone(f"unknown backbone {name!r}: use {_PATTERNS}")
    if source == "timm" and slash:
        raise UnknownBackbone(f"unknown backbone {name!r}: timm names have no '/'")
    if source == "open_clip" and not (slash or at):
        raise UnknownBackbone(f"unknown backbone {name!r}: name the weights too, {_PATTERNS}")
    return BackboneName(source=source, model=model, pretrained=pretrained or None, path=file)


def finetuned_name(name: str) -> str:
    """Return the name of a backbone after fine-tuning; a second one does not change it."""
    return name.removesuffix(_FINETUNED) + _FINETUNED


def list_backbones(weights_dir: Path | None = None) -> list[BackboneInfo]:
    """List the backbones with a short name; others of timm and open_clip have their full name."""
    return [
        *(_embedded_info(embedded) for embedded in EMBEDDED_BACKBONES.values()),
        *(_info(named, weights_dir) for named in NAMED_BACKBONES.values()),
    ]


def has_text_encoder(name: str) -> bool:
    """Tell whether texts can be compared with the features of a backbone."""
    try:
        return parse_name(name).source == "open_clip"
    except UnknownBackbone:
        return False


def feature_dim(name: str) -> int | None:
    """Return the features per image, or None for a model without a short name."""
    short = name.partition("@")[0]
    known = EMBEDDED_BACKBONES.get(name) or NAMED_BACKBONES.get(short)
    return None if known is None else known.dim


def _embedded_info(embedded: EmbeddedBackbone) -> BackboneInfo:
    installed = embedded.installed
    return BackboneInfo(
        name=embedded.name,
        source="embedded",
        description=embedded.description,
        dim=embedded.dim,
        available=installed,
        hint=None if installed else embedded.advice,
    )


def _info(named: NamedBackbone, weights_dir: Path | None) -> BackboneInfo:
    parsed = parse_name(named.name)
    installed = find_spec(named.library) is not None
    on_disk = parsed.find_weights(weights_dir) is not None
    if not installed:
        hint = f"install the Python package that provides {named.library}"
    elif on_disk:
        hint = None
    elif named.hosted:
        hint = (
            f"downloaded at first use, or by `temi backbones fetch {named.name}`; "
            f"where there is no network, {parsed.advice(weights_dir)}"
        )
    else:
        hint = parsed.advice(weights_dir)
    return BackboneInfo(
        name=named.name,
        source=named.library if named.hosted else "file",
        description=named.description,
        dim=named.dim,
        available=installed and (on_disk or named.hosted),
        hint=hint,
    )


def check_backbone(name: str, weights_dir: Path | None = None) -> None:
    """Raise UnknownBackbone or WeightsUnavailable for a backbone that cannot be loaded.

    Weights that a library downloads are assumed to be available.
    """
    parsed = parse_name(name)
    if parsed.embedded is not None:
        if not parsed.embedded.installed:
            raise WeightsUnavailable(parsed.embedded.advice)
        return
    if find_spec(parsed.source) is None:
        raise WeightsUnavailable(f"{name} needs the Python package that provides {parsed.source}")
    file = parsed.local_file(weights_dir)
    if file is not None and not file.is_file():
        raise WeightsUnavailable(f"there is no weights file at {file}")
    advice = parsed.advice(weights_dir)
    if parsed.named is not None:  # do not import the library, which imports torch
        if file is None and not parsed.named.hosted:
            raise WeightsUnavailable(f"the weights of {name} are missing: {advice}")
        return
    check = _check_timm if parsed.source == "timm" else _check_open_clip
    check(parsed, needs_pretrained=file is None, advice=advice)


def _check_timm(parsed: BackboneName, *, needs_pretrained: bool, advice: str) -> None:
    names = library_names("timm")
    architecture, _, tag = parsed.model.partition(".")
    if architecture not in names.models:
        raise UnknownBackbone(f"timm has no model {parsed.model!r}; timm.list_models() lists them")
    offered = (name.partition(".")[0] for name in names.pretrained)
    has_weights = parsed.model in names.pretrained if tag else architecture in offered
    if needs_pretrained and not has_weights:
        raise WeightsUnavailable(f"timm offers no weights for {parsed.model}: {advice}")


def _check_open_clip(parsed: BackboneName, *, needs_pretrained: bool, advice: str) -> None:
    names = library_names("open_clip")
    if parsed.model not in names.models:
        raise UnknownBackbone(
            f"open_clip has no model {parsed.model!r}; open_clip.list_models() lists them"
        )
    if needs_pretrained and f"{parsed.model}/{parsed.pretrained}" not in names.pretrained:
        start = f"{parsed.model}/"
        tags = sorted(
            name.removeprefix(start) for name in names.pretrained if name.startswith(start)
        )
        raise WeightsUnavailable(
            f"open_clip offers no {parsed.pretrained!r} weights for {parsed.model} "
            f"(offered: {', '.join(tags) or 'none'}): {advice}"
        )


_PATTERNS = (
    f"{DEFAULT_BACKBONE}, or another short name like dino_vitb16, timm:NAME or "
    "open_clip:NAME/PRETRAINED, these three also with @PATH"
)
