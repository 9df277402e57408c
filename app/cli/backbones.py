"""`temi backbones`."""

import json
from dataclasses import asdict

from app.cli.options import AsJson
from app.cli.output import print_table
from app.core.platform.settings import get_settings
from temi.backbones.catalog import list_backbones


def backbones(as_json: AsJson = False) -> None:
    """List named backbones; `timm:NAME` and `open_clip:NAME/PRETRAINED` work as well."""
    infos = list_backbones(get_settings().weights_dir)
    if as_json:
        print(json.dumps([asdict(one) for one in infos], indent=2))
        return
    rows = [(one.name, one.dim, one.description, one.hint or "ready") for one in infos]
    print_table("Backbones", ("name", ">features", "description", "weights"), rows)
