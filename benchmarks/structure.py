"""Counts what a reader of the code has to hold in mind.

    python -m benchmarks.structure [--root DIR]

Prints lines and modules of the packages, the modules that importing the job life cycle loads, and
what runs between an upload and a prediction: distinct functions, files, and calls from one folder
into another. The service runs with a profile hook in every process; `--root` measures another
checkout of the project.
"""

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from temi_client import TemiClient

PACKAGES = ("app", "worker", "temi", "temi_client")
_PRONOUNS = re.compile(r"\b(whoever|nobody|somebody|anybody|those who)\b", re.IGNORECASE)
_DEMO = Path(__file__).resolve().parent.parent / "demo"
_HOOK = """
import os, sys, threading
_root, _out = os.environ["STRUCTURE_ROOT"] + os.sep, os.environ["STRUCTURE_OUT"]
_packages = tuple(_root + name + os.sep for name in ("app", "worker", "temi"))
_seen, _file = set(), None

def _note(frame, event, _argument):
    global _file
    if event != "call":
        return
    name = frame.f_code.co_filename
    if not name.startswith(_packages) or frame.f_code.co_name == "<module>":
        return
    caller = frame.f_back
    while caller is not None and not caller.f_code.co_filename.startswith(_packages):
        caller = caller.f_back
    edge = (caller.f_code.co_filename if caller is not None else "", name, frame.f_code.co_qualname)
    if edge in _seen:
        return
    _seen.add(edge)
    if _file is None:
        _file = open(os.path.join(_out, f"{os.getpid()}.txt"), "a")
    _file.write("\\t".join(part.removeprefix(_root) for part in edge) + "\\n")
    _file.flush()

threading.setprofile(_note)
sys.setprofile(_note)
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structure")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--jobs-module", default="app.core.jobs.lifecycle")
    given = parser.parse_args()
    root: Path = given.root.resolve()
    sources = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    texts = [path.read_text("utf-8") for path in sources]
    core = root / "app" / "core"
    figures: dict[str, object] = {
        "lines of the packages": sum(text.count("\n") for text in texts),
        "files of the packages": len(sources),
        "modules at the top of app/core": sum(1 for _ in core.glob("[!_]*.py")),
        "folders at the top of app/core": sum(1 for _ in core.glob("*/__init__.py")),
        "indefinite pronouns": sum(len(_PRONOUNS.findall(text)) for text in texts),
        f"modules of core loaded by {given.jobs_module}": _loaded(root, given.jobs_module),
    }
    figures |= _measure_walk(root)
    for name, value in figures.items():
        print(f"| {name} | {value} |")


def _loaded(root: Path, module: str) -> int:
    program = (
        f"import sys, {module}; print(sum(name.startswith('app.core.') for name in sys.modules))"
    )
    command = [sys.executable, "-c", program]
    return int(subprocess.check_output(command, text=True, cwd=root, env=_environment(root)))


def _measure_walk(root: Path) -> dict[str, object]:
    """From an upload to labels and a prediction, through a service of its own."""
    with tempfile.TemporaryDirectory() as folder:
        hook, out = Path(folder, "hook"), Path(folder, "out")
        for path in (hook, out):
            path.mkdir()
        (hook / "sitecustomize.py").write_text(_HOOK)
        environment = {"STRUCTURE_ROOT": str(root), "STRUCTURE_OUT": str(out)}
        with _service(root, Path(folder, "data"), hook, environment) as url:
            for path in out.iterdir():  # what ran only to start the service
                path.rename(path.with_suffix(".start"))
            _use(url)
        before = {line for path in out.glob("*.start") for line in _edges(path)}
        edges = {line for path in out.glob("*.txt") for line in _edges(path)} - before
    functions = {(file, name) for _, file, name in edges}
    crossing = {(caller, name) for caller, file, name in edges if _room(caller) != _room(file)}
    return {
        "functions from upload to prediction": len(functions),
        "their files": len({file for file, _ in functions}),
        "calls from one folder into another": len(crossing),
    }


def _edges(path: Path) -> Iterator[tuple[str, str, str]]:
    for line in path.read_text("utf-8").splitlines():
        caller, file, name = line.split("\t")
        yield caller, file, name


def _room(file: str) -> str:
    return file.rpartition("/")[0]


@contextmanager
def _service(root: Path, data: Path, hook: Path, environment: dict[str, str]) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = _environment(root, hook) | environment
    env |= {"TEMI_DATA_DIR": str(data), "TEMI_PORT": str(port), "TEMI_LOG_LEVEL": "error"}
    command = [sys.executable, "-m", "app.cli.main", "serve"]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, cwd=root, env=env, stdout=subprocess.DEVNULL) as process:
        try:
            _wait(url, process)
            yield url
        finally:
            process.terminate()


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    with TemiClient(url) as client:
        while process.poll() is None:
            try:
                if client.ready().ready:
                    return
            except Exception:  # noqa: BLE001 - it does not listen yet
                time.sleep(1)
    raise RuntimeError(f"the service ended with {process.returncode}")


def _use(url: str) -> None:
    with TemiClient(url) as client:
        archive = _DEMO / "clipart.zip"
        upload = client.wait(client.upload_dataset(archive, name="d", labels_from="folder").id)
        job = client.wait(client.cluster(upload.dataset_id, n_clusters=8, n_heads=2, steps=50).id)
        assert job.result is not None
        list(client.clusters(job.result["clustering_id"]))
        list(client.labels(upload.dataset_id))
        image = next(iter(client.images(upload.dataset_id)))
        with tempfile.TemporaryDirectory() as folder:
            client.predict("d", [client.image_content(image.id, Path(folder, "one.png"))])


def _environment(root: Path, hook: Path | None = None) -> dict[str, str]:
    paths = [str(root)] if hook is None else [str(hook), str(root)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


if __name__ == "__main__":
    main()
