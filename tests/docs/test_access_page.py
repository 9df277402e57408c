"""The commands of docs/access.md work as they stand, from top to bottom."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from app.core.access.key_cache import CACHE_SECONDS
from app.core.platform.processes import kill_with_parent
from app.core.platform.settings import Settings
from tests.client.live import running_live
from tests.waiting import LONG_SECONDS

PAGE = Path(__file__).parents[2] / "docs" / "access.md"


def test_the_commands(settings: Settings, tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    script = "\n".join(re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    with running_live(settings) as live:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-s"],
            input=script,
            cwd=tmp_path,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "COLUMNS": "200",  # of the tables: no name is broken
                "TEMI_DATA_DIR": str(settings.data_dir),
                "TEMI_SERVER": live.url,
            },
            capture_output=True,
            text=True,
            timeout=5 * LONG_SECONDS,  # each command starts a process
            preexec_fn=kill_with_parent(),
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        assert '"data":[]' in done.stdout  # the collection is empty, and was shown
        for word in ("label printer", "photo booth", "my laptop", "/v1/keys"):
            assert word in done.stdout
        visitor = json.loads((tmp_path / "visitor.json").read_text())
        assert visitor["key"].startswith("temi_")
    assert f"within {CACHE_SECONDS:.0f} seconds" in page
