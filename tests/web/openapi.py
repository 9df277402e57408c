"""Writes the OpenAPI document, from which the types of the workbench are generated.

python -m tests.web.openapi web/openapi.json
"""

import json
import sys
import tempfile
from pathlib import Path

from app.core.platform.settings import Settings
from app.main import create_app


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        document = create_app(Settings(_env_file=None, data_dir=Path(folder))).openapi()
    target.write_text(json.dumps(document, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
