"""The table in docs/settings.md says what `Settings` says.

Write it again with `python -m tests.docs.test_settings_table`.
"""

import re
from pathlib import Path
from typing import Any

from app.core.platform.settings import GiB, KiB, MiB, Settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
_UNITS = (("GiB", GiB), ("MiB", MiB), ("KiB", KiB))
_HEAD = ["| variable | default | meaning |", "|---|---|---|"]
_TABLE = re.compile(r"^\| variable \|.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def settings_table() -> str:
    rows = [
        f"| `TEMI_{name.upper()}` | {_show(name, field.default)} | {_cell(field.description)} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join([*_HEAD, *rows])


def _show(name: str, default: Any) -> str:
    if default is None:
        return "not set"
    if default in ("", ()):
        return "empty"
    if isinstance(default, tuple):
        return f"`{','.join(default)}`"
    if name.endswith("_bytes"):
        unit, size = next(pair for pair in _UNITS if default % pair[1] == 0)
        return f"`{default}` ({default // size} {unit})"
    return f"`{default}`"


def _cell(text: str | None) -> str:
    assert text, "every setting is described"
    return text.replace("|", "\\|")


def test_table_agrees_with_the_settings() -> None:
    found = _TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None, f"{PAGE.name} has no table of settings"
    assert found[0].strip() == settings_table(), (
        "write it again with `python -m tests.docs.test_settings_table`"
    )


def test_table_names_every_setting_once() -> None:
    named = re.findall(r"^\| `(TEMI_\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert named == [f"TEMI_{name.upper()}" for name in Settings.model_fields]


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_TABLE.sub(lambda _: settings_table(), page), encoding="utf-8")
