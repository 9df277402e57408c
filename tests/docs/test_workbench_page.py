"""docs/workbench.md names all addresses and keys of the workbench."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "workbench.md").read_text(encoding="utf-8")
SOURCES = ROOT / "web" / "src"
_ARROWS = {"ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"}


def test_every_address_is_listed() -> None:
    router = (SOURCES / "lib" / "router.svelte.ts").read_text(encoding="utf-8")
    addresses = set(re.findall(r'^  \["[a-z]+", "([^"]+)"\],$', router, re.MULTILINE))
    assert len(addresses) > 8
    assert set(re.findall(r"^\| `#([^`]+)` \|", PAGE, re.MULTILINE)) == addresses


def test_every_key_is_listed() -> None:
    sources = [path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.svelte")]
    keys = {key for text in sources for key in re.findall(r'\{ keys: "([^"]+)", does:', text)}
    assert len(keys) > 20
    assert keys - _ARROWS - set(re.findall(r"`([^`]+)`", PAGE)) == set()
