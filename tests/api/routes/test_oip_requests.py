"""Parsing of the body of an inference request, without a service."""

import base64
import json
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from app.api.routes.oip.requests import read_request
from app.core.clusterings.names import ModelClusters
from app.core.models.files import ModelFiles
from app.core.platform.errors import InvalidRequest
from app.core.platform.settings import MiB, Settings
from app.core.serving.resolver import ResolvedModel
from temi.calibration import IDENTITY
from tests.api import oip_bodies as bodies
from tests.model_files import DIM


def _target(n_clusters: int = 3) -> ResolvedModel:
    files = ModelFiles(
        folder="x",
        hashes=(),
        backbone="x",
        weights_sha256="x",
        precision="float32",
        temperature=0.1,
    )
    clusters = ModelClusters(
        names=[f"cluster {number}" for number in range(n_clusters)],
        cluster_ids=list(range(n_clusters)),
    )
    return ResolvedModel(
        model_id="mdl_x",
        name="x",
        version=1,
        files=files,
        feature_dim=DIM,
        clusters=clusters,
        clustering_id=None,
        calibration=IDENTITY,
    )


def test_a_response_that_would_be_too_long() -> None:
    """Many clusters of many embeddings exceed the limit as JSON, not as binary data."""
    target, settings = _target(n_clusters=30_000), Settings(_env_file=None, max_predict_bytes=MiB)
    features = bodies.embeddings(np.zeros((5, DIM), np.float32))
    body = {"inputs": [features]}
    with pytest.raises(InvalidRequest, match="would be too long"):
        read_request(json.dumps(body).encode(), None, target, settings)
    for smaller in ({"outputs": [{"name": "label"}]}, {"parameters": {"binary_data_output": True}}):
        read = read_request(json.dumps(body | smaller).encode(), None, target, settings)
        assert len(read.inputs) == 5


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
_parameters = st.fixed_dictionaries(
    {}, optional={"binary_data_size": st.integers(-5, 60) | _json, "other": _json}
)
_tensors = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["images", "embeddings"]) | st.text(max_size=5),
        "datatype": st.sampled_from(["BYTES", "FP32", "INT64", "FP64"]),
        "shape": st.lists(st.sampled_from([-1, 0, 1, 2, DIM, 2**63]), max_size=3) | _json,
    },
    optional={
        "data": st.lists(st.binary(max_size=9).map(lambda b: base64.b64encode(b).decode()))
        | st.just([0.0] * DIM)
        | _json,
        "parameters": _parameters | _json,
    },
)
_requests = st.fixed_dictionaries(
    {"inputs": st.lists(_tensors, min_size=1, max_size=2) | _json},
    optional={
        "id": _json,
        "outputs": st.lists(st.fixed_dictionaries({"name": st.sampled_from(["label", "x"])})),
        "parameters": _json,
    },
)


@hypothesis.settings(max_examples=300)
@hypothesis.given(
    body=_requests | _json,
    tail=st.binary(max_size=60),
    header=st.none() | st.just("right") | st.text("0123456789-x", max_size=6),
)
def test_any_body_is_parsed_or_refused(body: Any, tail: bytes, header: str | None) -> None:
    text = json.dumps(body).encode()
    length = str(len(text)) if header == "right" else header
    try:
        read = read_request(text + tail, length, _target(), Settings(_env_file=None))
    except InvalidRequest:
        return  # whatever else it raised would be an error of ours
    assert len(read.inputs) >= 1
    assert (read.inputs.features is None) == bool(read.inputs.images)
