"""docs/errors.md lists every error code, with its status."""

import inspect
import re
from pathlib import Path

from app.api.http.errors import status_of
from app.core.platform import errors

PAGE = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
# Seen only by commands and workers, never by a client of the API.
_INTERNAL = {"backup_invalid", "database_newer", "lease_lost", "not_empty", "retention_lost"}
_ROW = re.compile(r"^\| (\d{3}) \| ([^|]*) \|", re.MULTILINE)


def _codes(text: str) -> set[str]:
    return set(re.findall(r"`([a-z_]+)`", text))


def _classes() -> list[type[errors.ServiceError]]:
    found = vars(errors).values()
    return [
        kind for kind in found if inspect.isclass(kind) and issubclass(kind, errors.ServiceError)
    ]


def test_every_code_is_listed() -> None:
    known = {kind.code for kind in _classes()} - _INTERNAL
    assert known - _codes(PAGE) == set()


def test_statuses_are_those_of_the_api() -> None:
    documented = {code: int(status) for status, cell in _ROW.findall(PAGE) for code in _codes(cell)}
    assert len(documented) > 50
    for kind in _classes():
        if kind.code in documented and kind.code != errors.ServiceError.code:
            assert documented[kind.code] == status_of(_instance(kind)), kind.code


def _instance(kind: type[errors.ServiceError]) -> errors.ServiceError:
    if issubclass(kind, errors.RateLimited):
        return kind("a detail", retry_after=1)
    return kind("a detail")
