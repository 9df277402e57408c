"""Numbers of model versions, and lookups by name, number and alias."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.models import registry
from app.core.models.names import slug
from app.core.platform.errors import InvalidRequest, NotFound
from app.core.runtime import Runtime
from tests.core.conftest import MakeJob
from tests.core.models.rows import add


def test_versions_count_up(any_runtime: Runtime, make_job: MakeJob) -> None:
    assert [add(any_runtime, make_job().id) for _ in range(3)] == [1, 2, 3]
    assert add(any_runtime, make_job().id, name="dogs") == 1
    assert add(any_runtime, make_job().id, tenant="other") == 1
    with any_runtime.db.read() as session:
        model, version = registry.resolve(session, "t", "cats")
        assert (model.latest_version, model.last_number, version.version) == (3, 3, 3)
        assert registry.get_version(session, model, 2).manifest == {"clusters": []}
        with pytest.raises(NotFound):
            registry.get_version(session, model, 4)


def test_jobs_that_end_together_get_different_numbers(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    add(any_runtime, make_job().id)
    ids = [make_job().id for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda job_id: add(any_runtime, job_id), ids))
    assert sorted(numbers) == list(range(2, 10))


def test_the_first_versions_of_a_new_model_may_be_concurrent(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    ids = [make_job().id for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda job_id: add(any_runtime, job_id), ids))
    assert sorted(numbers) == list(range(1, 9))


def test_versions_by_number(any_runtime: Runtime, make_job: MakeJob) -> None:
    for _ in range(2):
        add(any_runtime, make_job().id)
    with any_runtime.db.read() as session:
        assert registry.resolve(session, "t", "cats/versions/1")[1].version == 1
        for missing in ("cats/versions/3", "dogs/versions/1", "cats/versions/", "cats/versions/-1"):
            with pytest.raises(NotFound):
                registry.resolve(session, "t", missing)


def test_another_tenants_model_is_not_found(any_runtime: Runtime, make_job: MakeJob) -> None:
    add(any_runtime, make_job().id, tenant="other")
    with any_runtime.db.read() as session, pytest.raises(NotFound):
        registry.resolve(session, "t", "cats")


@given(st.text(max_size=150))
def test_any_text_gives_a_model_name(text: str) -> None:
    name = slug(text)
    assert registry.check_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", "A", "a/b", "a@b", "a" * 101, "ä", "a\n"])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        registry.check_name(name)
    assert caught.value.errors[0].field == "model_name"
