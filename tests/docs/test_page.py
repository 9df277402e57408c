"""The start page stands alone and lets nothing in but its own script."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "app" / "static" / "index.html"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("tag", ["script", "style"])
def test_policy_names_the_hash(tag: str) -> None:
    inline = re.findall(rf"<{tag}>(.*?)</{tag}>", TEXT, re.DOTALL)
    assert len(inline) == 1
    digest = base64.b64encode(hashlib.sha256(inline[0].encode()).digest()).decode()
    assert f"{tag}-src 'sha256-{digest}'" in TEXT, "put this hash into the page's policy"


def test_nothing_comes_from_elsewhere() -> None:
    assert re.findall(r"https?://|src=\"//|@import", TEXT) == []


def test_text_is_never_read_as_html() -> None:
    assert (
        re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", TEXT) == []
    )
    assert re.findall(r"<[^>]+\son[a-z]+=", TEXT) == []
