"""The page about backbones lists what the catalog knows, and nothing else."""

from pathlib import Path

from temi.backbones.auto import RANKING
from temi.backbones.catalog import parse_name
from temi.backbones.embedded import EMBEDDED_BACKBONES
from temi.backbones.named import NAMED_BACKBONES, NamedBackbone

PAGE = Path(__file__).parents[2] / "docs" / "backbones.md"


def row(named: NamedBackbone) -> str:
    suffix = named.public_file[named.public_file.index(".") :]
    source = named.library if named.hosted else "only a file"
    return (
        f"| `{named.name}` | {named.description} | {named.dim} | {source} "
        f"| `{named.public_file}` of {named.publisher} | `{named.name}{suffix}` |"
    )


def test_every_backbone_has_its_row() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `") and line.count(" | ") == 5]

    assert rows == [row(named) for named in NAMED_BACKBONES.values()]


def test_the_order_of_auto_is_listed() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [
        line for line in lines if line.startswith("| `") and line.endswith(("| yes |", "| no |"))
    ]

    assert rows == [
        f"| `{ranked.name}` | {ranked.cifar100 or '-'} | {ranked.imagenet or '-'} "
        f"| {'no' if ranked.needs_gpu else 'yes'} |"
        for ranked in RANKING
    ]


def test_the_embedded_backbones_are_named() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in text for name in EMBEDDED_BACKBONES)


def test_the_file_names_are_those_that_are_looked_for(tmp_path: Path) -> None:
    for named in NAMED_BACKBONES.values():
        file = tmp_path / row(named).split("`")[-2]
        file.touch()

        assert parse_name(named.name).local_file(tmp_path) == file
        assert file.name in parse_name(named.name).advice(tmp_path)
