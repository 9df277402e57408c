"""docs/registry.md names every field of a manifest, and no other."""

import re
from pathlib import Path

from app.core.models.package.manifest import Manifest

PAGE = Path(__file__).parents[2] / "docs" / "registry.md"


def test_every_field_of_a_manifest_is_described() -> None:
    section = PAGE.read_text("utf-8").partition("## The manifest")[2].partition("\n## ")[0]
    described = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert described == list(Manifest.model_fields)
