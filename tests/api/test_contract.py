"""The API keeps its own description: whatever is sent, no server error and no schema break.

`CONTRACT_EXAMPLES=200 pytest tests/api/test_contract.py` tries much longer.
"""

import os
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.conftest import Json, MakeClustering

pytestmark = pytest.mark.filterwarnings("ignore")
_CHECKS: list[Callable[..., Any]] = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
_EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES", "12"))
# An event stream ends with its job, and these jobs never end: nobody works on them.
_ENDLESS = "/v1/jobs/{job_id}/events"


@schemathesis.serializer("application/offset+octet-stream")
def _as_bytes(_context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@pytest.fixture
def known(client: TestClient, dataset: Json, make_clustering: MakeClustering) -> dict[str, Any]:
    """Ids that exist, by the name of the parameter that takes them."""
    clustering_id = make_clustering(dataset["id"])
    job = client.post("/v1/jobs", json={"dataset_id": dataset["id"], "n_clusters": 2}).json()
    images = client.get(f"/v1/datasets/{dataset['id']}/images").json()["data"]
    return {
        "dataset_id": dataset["id"],
        "clustering_id": clustering_id,
        "cluster_id": 0,
        "job_id": job["id"],
        "image_id": images[-1]["id"],
        "name": "cats-dogs",
        "version": 1,
    }


@pytest.fixture
def schema(client: TestClient, known: dict[str, Any]) -> Any:
    """The API's description, on a service that holds a dataset, a clustering and a job."""
    return schemathesis.openapi.from_asgi("/openapi.json", client.app).exclude(path=_ENDLESS)


def _settings(examples: int, steps: int = 1) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    )


def _try(operation: Any, known: dict[str, Any], examples: int) -> str | None:
    """What was found wrong with an operation, if anything."""

    @_settings(examples)
    @hypothesis.given(case=operation.as_strategy(), real=st.booleans())
    def send(case: Any, real: bool) -> None:
        # Those models have no files, and a request that finds that out gets a proper 503.
        if real and not operation.path.endswith(":predict"):
            case.path_parameters |= {
                name: known[name] for name in case.path_parameters if name in known
            }
        case.call_and_validate(checks=_CHECKS)

    try:
        send()
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - each operation is tried
        return f"{operation.label}: {error}"[:1500]
    return None


def _order(operation: Any) -> int:
    """Deletions last: the others need what they delete."""
    return int(operation.method.lower() == "delete" or operation.path.endswith(":delete"))


def test_every_operation_alone(schema: Any, known: dict[str, Any]) -> None:
    operations = sorted((found.ok() for found in schema.get_all_operations()), key=_order)
    wrong = [problem for each in operations if (problem := _try(each, known, _EXAMPLES))]
    assert wrong == []
    assert len(operations) >= 50


def test_operations_one_after_the_other(schema: Any) -> None:
    # The models here have no files: a prediction rightly gets a 503, which would end the run.
    machine = schema.exclude(path_regex=":predict$").as_state_machine()

    class Machine(machine):  # type: ignore[misc, valid-type]
        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            case.validate_response(response, checks=_CHECKS)

    Machine.run(settings=_settings(3 * _EXAMPLES, steps=8))
