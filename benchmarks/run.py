"""`make bench`: runs every benchmark in its short form, in less than twenty minutes.

The scripts have options for the long forms (more rows, more seeds, your own photos).
"""

import argparse
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks import embedding, mining, quality, serving, sets, time_to_quality, training
from temi.bench import bench

Row = dict[str, Any]
PACKAGES = ("torch", "timm", "faiss-gpu", "scikit-learn", "pillow", "numpy")


def machine() -> Row:
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "vectors": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "python": platform.python_version(),
        "load before": round(os.getloadavg()[0], 2),
        **versions,
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor()


def _embedding() -> Iterable[Row]:
    for row in embedding.run():
        yield {k: v for k, v in row.items() if k != "images/s"} | row.get("images/s", {})


def _time_to_quality() -> Iterable[Row]:
    row = time_to_quality.compare(sets.digits(), n_heads=16, seed=0)
    yield {name: value for name, value in row.items() if "curve" not in name}


PARTS: dict[str, Callable[[], Iterable[Row]]] = {
    "limits": lambda: (asdict(figure) for figure in bench()),
    "training": lambda: training.run(repeats=1),
    "embedding": _embedding,
    "mining": lambda: mining.measure(mining.DEFAULT_ROWS),
    "time to quality": _time_to_quality,
    "serving": lambda: serving.run(serving.parse(["--rounds", "5"]))["rounds"],
    "quality": lambda: quality.run([sets.digits(), sets.demo()], 1, quality.DEFAULT),
}


def print_table(rows: Sequence[Row]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(_cell(row.get(name)) for name in names) + " |")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return "" if value is None else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    arguments = parser.parse_args()
    print_table([machine()])
    results: dict[str, Any] = {"machine": machine()}
    for name in arguments.parts or PARTS:
        started = time.monotonic()
        print(f"\n## {name}\n", flush=True)
        results[name] = rows = list(PARTS[name]())
        print_table(rows)
        print(f"\n({time.monotonic() - started:.0f} s)", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
