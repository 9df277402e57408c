"""Manifests: labels and attributes of images, and errors with line numbers."""

import io

import pytest

from app.core.datasets.sources.manifests import Entry, Lookup, manifest_format, read_entries
from app.core.platform.errors import ManifestInvalid


def _read(text: str | bytes, format_: str) -> list[Entry]:
    data = text if isinstance(text, bytes) else text.encode()
    return list(read_entries(io.BytesIO(data), format_))


def test_a_csv() -> None:
    text = '\ufeffpath,label,camera\n/a.jpg,cat,X100\n\n"/b ""c"".jpg",,\n'
    assert _read(text, "csv") == [
        Entry(2, "/a.jpg", "cat", {"camera": "X100"}),
        Entry(4, '/b "c".jpg', None, {}),
    ]


def test_json_lines() -> None:
    text = '{"url": "https://e.org/a", "label": 7, "size": [1, 2]}\r\n\n{"file": "b", "url": "c"}'
    assert _read(text, "jsonl") == [
        Entry(1, "https://e.org/a", "7", {"size": [1, 2]}),
        Entry(3, "b", None, {"url": "c"}),
    ]


def test_columns_without_a_name_are_skipped() -> None:
    assert _read(",file,label\n0,a.jpg,x\n", "csv") == [Entry(2, "a.jpg", "x", {})]


@pytest.mark.parametrize(
    ("text", "format_", "line", "what"),
    [
        pytest.param("", "csv", 1, "no `path`", id="nothing"),
        pytest.param("name,label\na,b\n", "csv", 1, "no `path`", id="no path column"),
        pytest.param("path,a,a\nx,1,2\n", "csv", 1, "twice", id="a column twice"),
        pytest.param("path\nx\ny,z\n", "csv", 3, "more fields", id="too many fields"),
        pytest.param("path,label\n,cat\n", "csv", 2, "`path`", id="an empty path"),
        pytest.param('path\n"x\n', "csv", 2, "not CSV", id="an open quote"),
        pytest.param("path\n" + "x" * 70_000, "csv", 2, "longer", id="a long line"),
        pytest.param(b"path\nok\n\xff\n", "csv", 3, "UTF-8", id="no UTF-8"),
        pytest.param("path\na\x00b\n", "csv", 2, "zero", id="a zero byte"),
        pytest.param('{"path": "a"}\n{', "jsonl", 2, "not JSON", id="half a line of JSON"),
        pytest.param("[1]", "jsonl", 1, "object", id="a list"),
        pytest.param('{"label": "a"}', "jsonl", 1, "no `path`", id="JSON without a path"),
        pytest.param('{"path": 1}', "jsonl", 1, "`path`", id="a path that is no text"),
        pytest.param('{"path": "a", "label": [1]}', "jsonl", 1, "label", id="a strange label"),
        pytest.param('{"path": "a", "x": NaN}', "jsonl", 1, "not JSON", id="not a number"),
        pytest.param('{"path": "a", "x": 1e999}', "jsonl", 1, "not JSON", id="infinite"),
        pytest.param('{"path": "a", "x": "\\u0000"}', "jsonl", 1, "zero", id="a hidden zero"),
        pytest.param('{"path": "a", "x": "\\ud800"}', "jsonl", 1, "not JSON", id="a surrogate"),
        pytest.param("[" * 60_000, "jsonl", 1, "not JSON", id="deeply nested"),
    ],
)
def test_errors_name_the_bad_line(text: str | bytes, format_: str, line: int, what: str) -> None:
    with pytest.raises(ManifestInvalid, match=f"Line {line} .*{what}") as caught:
        _read(text, format_)
    assert caught.value.code == "manifest_invalid"


def test_only_a_manifest_at_the_root_is_one() -> None:
    assert manifest_format("manifest.csv") == "csv"
    assert manifest_format("./manifest.jsonl") == "jsonl"
    assert manifest_format("photos/manifest.csv") is None
    assert manifest_format("manifest.txt") is None


def test_labels_and_attributes_are_found_by_name() -> None:
    entries = [Entry(1, "./cats/a.jpg", "cat", {"n": 1}), Entry(2, "b.jpg", None, {})]
    lookup = Lookup(entries)
    assert lookup.find("cats/a.jpg") == ("cat", {"n": 1})
    assert lookup.find("cats\\a.jpg") == ("cat", {"n": 1})
    assert lookup.find("other.jpg") == (None, {})
    lookup.close()


def test_a_row_over_many_lines_has_a_limit() -> None:
    """Fields may have line breaks: one row could be as long as the file."""
    rows = b'path,label\na.png,"one\ntwo"\nb.png,' + b'"\nx",' * 200_000
    entries = read_entries(io.BytesIO(rows), "csv")
    assert next(entries).label == "one\ntwo"
    with pytest.raises(ManifestInvalid, match="a row of more than 65,536 bytes"):
        next(entries)
