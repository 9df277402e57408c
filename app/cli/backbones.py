"""`temi backbones`: what can turn images into features here."""

import json
from dataclasses import asdict

from app.cli.options import AsJson
from app.cli.output import print_table
from app.core.platform.settings import get_settings
from temi.backbones.catalog import list_backbones


def backbones(as_json: AsJson = False) -> None:
    """List the named backbones; `timm:NAME` and `open_clip:NAME/PRETRAINED` name any other."""
    found = list_backbones(get_settings().weights_dir)
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=2))
        return
    rows = [(one.name, one.dim, one.description, one.hint or "ready") for one in found]
    print_table("Backbones", ("name", ">features", "what it is", "weights"), rows)
