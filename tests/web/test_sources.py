"""The sources of the workbench: their own tests, and what the built page loads."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.built_page import WEB, build_page, require_packages, run_npm

_STATIC = WEB.parent / "app" / "static"
# Bytes of JavaScript after gzip.
_LIMIT, _LIMIT_WITH_MAP = 250_000, 400_000


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_page()


def test_vitest() -> None:
    require_packages()
    run_npm("test")


def test_the_page_has_no_inline_code() -> None:
    text = (_STATIC / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|<[^>]+\son[a-z]+=", text) == []
    assert "http-equiv" not in text  # the policy is a header


def test_the_page_names_files_of_the_service() -> None:
    text = (_STATIC / "index.html").read_text(encoding="utf-8")
    addresses = re.findall(r"""(?:src|href)=["']([^"']+)["']""", text)
    assert len(addresses) >= 3
    for address in addresses:
        assert address.startswith("./")
        assert (_STATIC / address).is_file()


def test_nothing_is_loaded_from_elsewhere() -> None:
    for path in (_STATIC / "assets").glob("*.css"):
        for address in re.findall(r"url\(([^)]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / address.strip("\"'")).is_file()
    for path in _scripts():
        assert re.findall(r"(?:import|importScripts)\(?[\"'`]https?:", _text(path)) == []


def test_no_text_is_evaluated() -> None:
    """The policy forbids it; `{@html}` would let a file's name become markup."""
    for path in (WEB / "src").rglob("*.svelte"):
        assert "{@html" not in _text(path)
    for path in (WEB / "src").rglob("*.*"):
        if path.suffix in (".ts", ".svelte"):
            assert re.findall(r"\beval\(|new Function\(|\.innerHTML\b", _text(path)) == []


def test_size() -> None:
    sizes = {path.name: path.with_name(path.name + ".gz").stat().st_size for path in _scripts()}
    with_map = sum(sizes.values())
    of_map = sum(size for name, size in sizes.items() if name.lower().startswith(_OF_MAP))
    assert with_map - of_map < _LIMIT, sizes
    assert with_map < _LIMIT_WITH_MAP, sizes


# Files that only the map loads.
_OF_MAP = ("map-", "scatter", "regl")


def _scripts() -> Iterator[Path]:
    return (_STATIC / "assets").glob("*.js")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
