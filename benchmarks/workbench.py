"""The figures of the workbench: large sets in a real browser, and the steps of a person who labels.

.venv/bin/python -m benchmarks.workbench
.venv/bin/python -m benchmarks.workbench --images 5000 --points 20000 --parts start,grid,merge

It starts services of its own in a temporary folder, fills their databases, and drives headless
Chromium. Times are taken inside of the page. The page must be built: `make web`.
"""

import argparse
import os
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks import workbench_labeling, workbench_pages
from benchmarks.workbench_pages import Figure
from benchmarks.workbench_rows import large_service
from tests.web.browser import chromium

PARTS = ("start", "grid", "merge", "map", "size", "labeling")


def report(figures: list[Figure]) -> None:
    for figure in figures:
        load = f"{os.getloadavg()[0]:.1f}"
        print(f"| {figure.what} | {figure.measured} | {figure.aim} | {load} |", flush=True)


def run_large(
    browser: Browser, folder: Path, parts: list[str], options: argparse.Namespace
) -> None:
    merged = min(10_000, options.images // 4)
    with large_service(folder, options.images, merged=merged) as url:
        for _ in range(options.rounds):
            if "start" in parts:
                report(workbench_pages.start(browser, url, options.repeats))
            if "grid" in parts:
                report(workbench_pages.grid(browser, url, options.images))
            if "merge" in parts:
                report(workbench_pages.merge(browser, url, options.repeats))


def run_map(browser: Browser, folder: Path, options: argparse.Namespace) -> None:
    with large_service(folder, options.points, merged=min(10_000, options.points // 4)) as url:
        for _ in range(options.rounds):
            report(workbench_pages.map_of(browser, url, options.points))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100_000)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--photos", type=Path, help="zip with a folder per kind, for `labeling`")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--repeats", type=int, default=5, help="of start and merge")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    parts = [part for part in PARTS if part in options.parts.split(",")]
    print("| what | measured | aim | load |\n|---|---|---|---|", flush=True)
    if "size" in parts:
        report(workbench_pages.size())
    with tempfile.TemporaryDirectory(prefix="temi-workbench-") as name, chromium() as browser:
        folder = Path(name)
        if {"start", "grid", "merge"} & set(parts):
            run_large(browser, folder / "images", parts, options)
        if "map" in parts:
            run_map(browser, folder / "map", options)
        if "labeling" in parts:
            report(workbench_labeling.measure(browser, folder / "labeling", options.photos))


if __name__ == "__main__":
    main()
