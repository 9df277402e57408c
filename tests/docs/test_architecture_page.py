"""Every file and folder that the pages for developers name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_ROOMS = "app|worker|temi|temi_client|tests|migrations|deploy"
_PATH = re.compile(rf"(?<![\w/.-])((?:{_ROOMS})/[\w/.-]*)")


@pytest.mark.parametrize("page", ["architecture.md", "where-to-change.md"])
def test_named_files_exist(page: str) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    named = {found.rstrip(".") for found in _PATH.findall(text)}
    assert len(named) > 15
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
