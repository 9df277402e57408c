"""Manifests need every field, with values that can be stored."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.models.package.manifest import Manifest, parse_manifest
from app.core.platform.errors import ModelFileInvalid
from tests.model_files import small_manifest

_OPTIONAL = {"calibration", "model", "finetuned_from", "finetune"}


def _parse(text: str | bytes) -> Manifest:
    data = text if isinstance(text, bytes) else text.encode()
    return parse_manifest(data)[0]


def test_a_valid_manifest() -> None:
    values = small_manifest(3, finetuned_from={"name": "a", "version": 1}, finetune={"steps": 4})
    manifest, stored = parse_manifest(json.dumps(values).encode())
    assert stored == values
    assert (manifest.format, manifest.n_clusters, manifest.model) == (1, 3, None)


@pytest.mark.parametrize(
    "values", [{"slope": 0.0, "intercept": 0.0}, {"slope": 1.0}, {"slope": 1.0, "intercept": 1e9}]
)
def test_an_impossible_calibration_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(ModelFileInvalid, match="calibration"):
        _parse(json.dumps(small_manifest(3, calibration=values)))


@pytest.mark.parametrize("field", sorted(set(Manifest.model_fields) - _OPTIONAL))
def test_every_field_is_needed(field: str) -> None:
    values = small_manifest(3)
    del values[field]
    with pytest.raises(ModelFileInvalid, match=field):
        _parse(json.dumps(values))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"format": 2}, "format"),
        ({"format": "1"}, "format"),
        ({"weights_sha256": "xyz"}, "weights_sha256"),
        ({"n_clusters": 3.0}, "n_clusters"),
        ({"n_clusters": 10**30}, "n_clusters"),
        ({"temperature": 0}, "temperature"),
        ({"temperature": "0.1"}, "temperature"),
        ({"clusters": []}, "numbered"),
        ({"clusters": [{"cluster_id": 0, "label": "x"}] * 3}, "numbered"),
        ({"clusters": [{"cluster_id": i, "label": "x" * 201} for i in range(3)]}, "label"),
        ({"preprocessing": {"size": 1}}, "preprocessing.resize"),
        ({"model": {"name": "x"}}, "model.version"),
        ({"config": {"n_clusters": 4}}, "config.n_clusters is 4"),
        ({"config": {"n_clusters": 3, "beta": 7}}, "beta"),
        ({"config": {"n_clusters": "3"}}, "config"),
        ({"config": {"n_clusters": 3, "unknown": 1}}, "unknown"),
        ({"config": {}}, "n_clusters"),
        ({"packages": {"torch": 2}}, "packages"),
        ({"metrics": {"text": "zero\x00byte"}}, "cannot be stored"),
    ],
)
def test_fields_that_are_refused(change: dict[str, Any], match: str) -> None:
    with pytest.raises(ModelFileInvalid, match=match):
        _parse(json.dumps(small_manifest(3) | change))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"a": NaN}', "not a JSON number"),
        ('{"a": -Infinity}', "not a JSON number"),
        ('{"a": 1e999}', "too large"),
        ('{"a": ' + "1" * 5000 + "}", "not JSON"),
        ('{"a": "\\ud800"}', "cannot be stored"),
        ('{"\\u0000": 1}', "cannot be stored"),
        ('{"a":' * 40 + "1" + "}" * 40, "deeper than 32"),
        ('{"a": ' + "[" * 400_000, "nested too deep"),
        (b"\xff\xfe", "not JSON"),
    ],
)
def test_json_that_is_refused(text: str | bytes, match: str) -> None:
    with pytest.raises(ModelFileInvalid, match=match):
        _parse(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.sampled_from(sorted(Manifest.model_fields)),
)
def test_any_json_is_refused_or_valid(value: Any, field: str) -> None:
    text = json.dumps(small_manifest(3) | {field: value})
    try:
        manifest = _parse(text)
    except ModelFileInvalid:
        return
    assert manifest.n_clusters == len(manifest.clusters) == 3
