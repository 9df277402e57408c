"""What `temi doctor` says of backbones: what `auto` chooses, and how to get a better one."""

from collections.abc import Iterator

from app.core.models.backbones import choose_usable_backbone
from app.core.platform.hardware import computes_on_gpu
from app.core.platform.settings import Settings
from temi.backbones.auto import RANKING, SUPERVISED_RESNET50, RankedBackbone, better_backbones
from temi.backbones.embedded import EMBEDDED_BACKBONES


def describe_choice(settings: Settings) -> str:
    choice = choose_usable_backbone(settings)
    figures = {ranked.name: ranked.figures for ranked in RANKING}[choice.name]
    if choice.name in EMBEDDED_BACKBONES:
        figures += f"; a supervised ResNet-50: {SUPERVISED_RESNET50.figures}"
    return f"auto chooses {choice.name} ({choice.weights}): {figures}"


def better_ones(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yields a description and the command to run, for the best one and the best of the paper."""
    chosen = choose_usable_backbone(settings).name
    better = better_backbones(chosen, has_gpu=computes_on_gpu(settings))
    of_paper = [ranked for ranked in better if ranked.cifar100 is not None]
    for ranked in dict.fromkeys([*better[:1], *of_paper[:1]]):
        yield f"{ranked.name}: {ranked.figures}", _command(ranked, settings)


def _command(ranked: RankedBackbone, settings: Settings) -> str:
    fetch = f"temi backbones fetch {ranked.name}"
    if settings.weights_dir is not None:
        return fetch
    return f"export TEMI_WEIGHTS_DIR=$PWD/weights; {fetch}"
