"""Property tests against the OpenAPI document: no server errors, no schema violations.

`CONTRACT_EXAMPLES=200 pytest tests/api/test_contract.py` tries much longer.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
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

from app.core.platform.settings import Settings
from tests.api.conftest import Json, MakeClustering
from tests.conftest import MakeClient, MakeSettings
from tests.keys import bearer
from tests.promises import Promises

pytestmark = pytest.mark.filterwarnings("ignore")
_CHECKS: list[Callable[..., Any]] = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
_EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES", "12"))
# An event stream ends with its job, and these jobs never end: there is no worker.
_ENDLESS = "/v1/jobs/{job_id}/events"
# They load a model; their bodies have tests of their own.
_LOADING = (":predict", "/predict", "/infer", "/ready")
_KEY = "a-long-enough-key-for-tests"


@schemathesis.serializer("application/offset+octet-stream", "application/zip")
def _as_bytes(_context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@pytest.fixture
def settings(make_settings: MakeSettings) -> Settings:
    """With a key: otherwise the first key that a test creates would lock out the rest."""
    return make_settings(api_key=_KEY)


@pytest.fixture
def client(make_client: MakeClient, settings: Settings) -> TestClient:
    return make_client(settings, headers=bearer(_KEY))


@pytest.fixture
def known(client: TestClient, dataset: Json, make_clustering: MakeClustering) -> dict[str, Any]:
    """Existing ids by the name of their parameter."""
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
        "model": "cats-dogs",
        "version": 1,
    }


@pytest.fixture
def schema(client: TestClient, known: dict[str, Any]) -> Any:
    """The OpenAPI schema of a service with a dataset, a clustering and a job."""
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
    """The failures of an operation."""

    @_settings(examples)
    @hypothesis.given(case=operation.as_strategy(), real=st.booleans())
    def send(case: Any, real: bool) -> None:
        # A model that is not loaded yet gets a proper 503, which would count as a fault here.
        if real and not operation.path.endswith(_LOADING):
            case.path_parameters |= {
                name: known[name] for name in case.path_parameters if name in known
            }
        case.call_and_validate(checks=_CHECKS, headers=bearer(_KEY))

    try:
        send()
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - each operation is tried
        return f"{operation.label}: {error}"[:1500]
    return None


def _order(operation: Any) -> int:
    """Deletions last: the others need the resources."""
    return int(operation.method.lower() == "delete" or operation.path.endswith(":delete"))


def test_every_operation_alone(schema: Any, known: dict[str, Any], promises: Promises) -> None:
    operations = sorted((found.ok() for found in schema.get_all_operations()), key=_order)
    wrong = [problem for each in operations if (problem := _try(each, known, _EXAMPLES))]
    assert len(operations) >= 50
    promises.keep(
        "API contract, each operation",
        f"0 server errors, 0 schema breaks; {_EXAMPLES} requests each",
        f"{len(wrong)} of {len(operations)} operations" + "".join(f"; {w}" for w in wrong[:1]),
        kept=not wrong,
    )


def _copy_database(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


def test_operations_one_after_the_other(
    schema: Any, settings: Settings, tmp_path: Path, promises: Promises
) -> None:
    database, saved = settings.data_dir / "temi.db", tmp_path / "saved.db"
    _copy_database(database, saved)
    # A model that is not loaded yet gets a proper 503, which would end the run.
    machine = schema.exclude(path_regex=rf"({'|'.join(_LOADING)})$").as_state_machine()

    class Machine(machine):  # type: ignore[misc, valid-type]
        def setup(self) -> None:
            # What one run deletes must be there for the next, or the same choices would lead
            # elsewhere, and that is taken for a fault.
            _copy_database(saved, database)

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": bearer(_KEY)}

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            case.validate_response(response, checks=_CHECKS)

    Machine.run(settings=_settings(3 * _EXAMPLES, steps=8))
    promises.keep(
        "API contract, one after the other",
        "0 server errors, 0 schema breaks",
        f"0 in {3 * _EXAMPLES} runs of up to 8 steps",
        kept=True,  # else it has raised what it found
    )
