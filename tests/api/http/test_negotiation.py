import pytest

from app.api.http.negotiation import choose_media_type
from app.core.platform.errors import NotAcceptable

OFFERED = ["application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"]
JSON, CSV, ARROW = OFFERED


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("text/csv", CSV),
        ("TEXT/CSV; charset=utf-8", CSV),
        ("text/*", CSV),
        ("application/*", JSON),
        (f"{ARROW}, */*;q=0.1", ARROW),
        (f"{CSV};q=0.5, {ARROW};q=0.9", ARROW),
        (f"{CSV};q=0.5,{ARROW};q=0.5", CSV),
        (f"*/*, {JSON};q=0", CSV),
        (f"application/*;q=0.2, {ARROW};q=0.8, text/*;q=0.5", ARROW),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", JSON),
        (f"{JSON};q=nonsense, text/csv;q=0.1", CSV),
        (" , ,text/csv", CSV),
    ],
)
def test_the_preferred_media_type_is_chosen(accept: str, expected: str) -> None:
    assert choose_media_type(accept, OFFERED) == expected


@pytest.mark.parametrize(
    "accept",
    ["application/json", "image/*", "*/*;q=0", "text/csv;q=0.0", "text/csv;q=7", "csv", ",", "*"],
)
def test_no_acceptable_media_type(accept: str) -> None:
    with pytest.raises(NotAcceptable, match="text/csv"):
        choose_media_type(accept, OFFERED)
