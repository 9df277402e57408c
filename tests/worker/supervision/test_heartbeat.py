"""A worker has a row in the table of workers while it runs."""

import os
import threading
from pathlib import Path

import pytest

from app.core.platform import hardware
from app.core.platform.tables import Worker
from app.core.runtime import Runtime
from tests.conftest import MakeSettings
from tests.waiting import join, wait_until
from worker.supervision.heartbeat import (
    available_resources,
    deregister_worker,
    describe_device,
    start_heartbeat,
    worker_name,
    worker_state,
)


def listed(runtime: Runtime) -> Worker | None:
    with runtime.db.read() as session:
        return session.get(Worker, worker_name())


def test_the_row_shows_the_current_work(any_runtime: Runtime) -> None:
    stopping = threading.Event()
    thread = start_heartbeat(any_runtime, stopping)
    wait_until(lambda: listed(any_runtime))
    found = listed(any_runtime)
    assert found is not None
    assert (found.pid, found.job_id) == (os.getpid(), None)
    assert found.takes == list(available_resources(any_runtime.settings))
    worker_state.start_work("job_1", "embed")
    wait_until(lambda: getattr(listed(any_runtime), "stage", None) == "embed")
    worker_state.end_work()
    wait_until(lambda: getattr(listed(any_runtime), "job_id", "gone") is None)
    stopping.set()
    join(thread)
    deregister_worker(any_runtime.db)
    assert listed(any_runtime) is None


def test_the_device_without_a_gpu(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(hardware, "_GPUS", tmp_path)
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: A Chip\n")
    monkeypatch.setattr(hardware, "_CPUS", tmp_path / "cpuinfo")
    assert describe_device(make_settings(torch_threads=3)) == "A Chip, 3 threads"
    assert describe_device(make_settings(device="cpu")) == "cpu"


def test_the_names_of_gpus(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for slot in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / slot).mkdir()
        (tmp_path / slot / "information").write_text("Model: \t\t NVIDIA L4\nIRQ: 1\n")
    monkeypatch.setattr(hardware, "_GPUS", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert describe_device(make_settings()) == "NVIDIA L4, NVIDIA L4"
    assert describe_device(make_settings(device="cuda:1")) == "cuda:1: NVIDIA L4, NVIDIA L4"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "NVIDIA" not in describe_device(make_settings())


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu avx2 fma avx512f avx512_bf16", ("cpu", "gpu", "bfloat16")),
        ("fpu avx2 fma amx_bf16 amx_tile", ("cpu", "gpu", "bfloat16")),
        ("fpu avx2 fma avx512f", ("cpu", "gpu")),
    ],
)
def test_bfloat16_is_a_resource_of_hardware_that_has_it(
    make_settings: MakeSettings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    flags: str,
    expected: tuple[str, ...],
) -> None:
    monkeypatch.setattr(hardware, "_GPUS", tmp_path / "none")
    (tmp_path / "cpuinfo").write_text(f"model name\t: A Chip\nflags\t\t: {flags}\n")
    monkeypatch.setattr(hardware, "_CPUS", tmp_path / "cpuinfo")
    assert available_resources(make_settings()) == expected
    (tmp_path / "cpuinfo").unlink()
    assert available_resources(make_settings()) == ("cpu", "gpu")
