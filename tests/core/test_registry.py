"""Model versions count up and never change; a changed file is never served."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core import registry
from app.core.errors import InvalidRequest, ModelIntegrity, NotFound
from app.core.runtime import Runtime
from app.core.storage import LocalStorage
from tests.core.conftest import MakeJob


def _add(runtime: Runtime, job_id: str, name: str = "cats", tenant: str = "t") -> int:
    with runtime.db.write() as session:
        return registry.add_version(
            session,
            tenant=tenant,
            name=name,
            job_id=job_id,
            clustering_id="cl_1",
            folder=f"models/{job_id}",
            manifest={"clusters": []},
            files={"model.safetensors": "00"},
        ).version


def test_versions_count_up(any_runtime: Runtime, make_job: MakeJob) -> None:
    assert [_add(any_runtime, make_job().id) for _ in range(3)] == [1, 2, 3]
    assert _add(any_runtime, make_job().id, name="dogs") == 1
    assert _add(any_runtime, make_job().id, tenant="other") == 1
    with any_runtime.db.read() as session:
        model, version = registry.resolve(session, "t", "cats")
        assert (model.latest_version, version.version) == (3, 3)
        assert registry.get_version(session, model, 2).manifest == {"clusters": []}
        with pytest.raises(NotFound):
            registry.get_version(session, model, 4)


def test_jobs_that_end_together_get_different_numbers(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    _add(any_runtime, make_job().id)
    ids = [make_job().id for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda job_id: _add(any_runtime, job_id), ids))
    assert sorted(numbers) == list(range(2, 10))


def test_the_first_versions_of_a_new_model_may_come_together(
    any_runtime: Runtime, make_job: MakeJob
) -> None:
    ids = [make_job().id for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda job_id: _add(any_runtime, job_id), ids))
    assert sorted(numbers) == list(range(1, 9))


def test_aliases(any_runtime: Runtime, make_job: MakeJob) -> None:
    for _ in range(2):
        _add(any_runtime, make_job().id)
    with any_runtime.db.write() as session:
        model = registry.get_model(session, "t", "cats")
        registry.set_alias(session, model, "production", 1)
        assert registry.aliases(session, model) == {"latest": 2, "production": 1}
        registry.set_alias(session, model, "production", 2)
        registry.set_alias(session, model, "previous", 1)
    with any_runtime.db.write() as session:
        assert registry.resolve(session, "t", "cats@production")[1].version == 2
        assert registry.resolve(session, "t", "cats@previous")[1].version == 1
        assert registry.resolve(session, "t", "cats@latest")[1].version == 2
        registry.remove_alias(session, registry.get_model(session, "t", "cats"), "previous")
        with pytest.raises(NotFound, match="previous"):
            registry.resolve(session, "t", "cats@previous")
        with pytest.raises(NotFound):
            registry.remove_alias(session, registry.get_model(session, "t", "cats"), "previous")


def test_versions_by_number(any_runtime: Runtime, make_job: MakeJob) -> None:
    for _ in range(2):
        _add(any_runtime, make_job().id)
    with any_runtime.db.read() as session:
        assert registry.resolve(session, "t", "cats/versions/1")[1].version == 1
        for missing in ("cats/versions/3", "dogs/versions/1", "cats/versions/", "cats/versions/-1"):
            with pytest.raises(NotFound):
                registry.resolve(session, "t", missing)


@pytest.mark.parametrize("alias", ["latest", "", "Upper", "1st", "a" * 65, "a b", "a\n"])
def test_aliases_that_are_refused(any_runtime: Runtime, make_job: MakeJob, alias: str) -> None:
    _add(any_runtime, make_job().id)
    with any_runtime.db.write() as session:
        model = registry.get_model(session, "t", "cats")
        with pytest.raises(InvalidRequest):
            registry.set_alias(session, model, alias, 1)
        with pytest.raises(NotFound):
            registry.set_alias(session, model, "fine", 9)


def test_another_tenants_model_is_not_there(any_runtime: Runtime, make_job: MakeJob) -> None:
    _add(any_runtime, make_job().id, tenant="other")
    with any_runtime.db.read() as session, pytest.raises(NotFound):
        registry.resolve(session, "t", "cats")


@given(st.text(max_size=150))
def test_any_text_gives_a_model_name(text: str) -> None:
    name = registry.slug(text)
    assert registry.check_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", "A", "a/b", "a@b", "a" * 101, "ä", "a\n"])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        registry.check_name(name)
    assert caught.value.errors[0].field == "model_name"


def test_a_flipped_bit_is_never_served(runtime: Runtime) -> None:
    storage, data = runtime.storage, bytes(range(64))
    sha256 = hashlib.sha256(data).hexdigest()
    _expect(storage, data, sha256, good=True)
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        _expect(storage, bytes(changed), sha256, good=False)
    for changed_data in (b"", data[:-1], data + b"\x00"):
        _expect(storage, changed_data, sha256, good=False)


def _expect(storage: LocalStorage, data: bytes, sha256: str, *, good: bool) -> None:
    storage.path("models/m").mkdir(parents=True, exist_ok=True)
    storage.path("models/m/model.safetensors").write_bytes(data)
    if good:
        assert registry.read_verified(storage, "models/m", "model.safetensors", sha256) == data
    else:
        with pytest.raises(ModelIntegrity, match="not what was registered"):
            registry.read_verified(storage, "models/m", "model.safetensors", sha256)


def test_a_missing_file_is_an_integrity_error(runtime: Runtime) -> None:
    with pytest.raises(ModelIntegrity, match="cannot be read"):
        registry.read_verified(runtime.storage, "models/none", "model.safetensors", "00")
