"""Dashboard and alerts speak of figures that the service really shows."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from fastapi.testclient import TestClient

from app.api.metrics import state
from app.core.platform.settings import Settings
from tests.servers import free_port
from tests.waiting import LONG_SECONDS
from worker.supervision.metrics import WorkerMetrics

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "docs" / "operations.md"
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/temi.json").read_text("utf-8"))
RULES: dict[str, Any] = yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text("utf-8"))
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
CHARTS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in CHARTS for target in panel["targets"]]
_NAME = re.compile(r"\b(?:temi|process)_[a-z_]+")
_TYPE = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)


@pytest.fixture
def shown(client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every name in `/metrics` of an API and of a worker; a busy machine's database is waited for,
    for without it some are missing."""
    monkeypatch.setattr(state, "_TIMEOUT_SECONDS", LONG_SECONDS)
    served = settings.model_copy(update={"metrics_port": free_port()})
    WorkerMetrics().serve(served)
    worker = httpx.get(f"http://127.0.0.1:{served.metrics_port}/metrics", timeout=LONG_SECONDS).text
    names: set[str] = set()
    for name, kind in _TYPE.findall(client.get("/metrics").text + worker):
        ends = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        names.update(name + end for end in ends)
    return names


@pytest.mark.parametrize(
    "queries", [QUERIES, [rule["expr"] for rule in ALERTS]], ids=["dashboard", "alerts"]
)
def test_every_name_is_shown(queries: list[str], shown: set[str]) -> None:
    named = {name for query in queries for name in _NAME.findall(query)}
    assert len(named) > 8
    assert named <= shown


def test_every_figure_of_ours_is_explained(shown: set[str]) -> None:
    ours = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown if name.startswith("temi")}
    ours = {name for name in ours if not name.endswith("_created")}
    assert ours == set(re.findall(r"^\| `(temi_\w+)`", OPERATIONS.read_text("utf-8"), re.MULTILINE))


def test_the_dashboard_can_be_imported() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    (variable,) = DASHBOARD["templating"]["list"]
    assert (variable["name"], variable["type"]) == ("datasource", "datasource")
    for panel in CHARTS:
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert {source["uid"] for source in sources} == {"${datasource}"}
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    assert rows == ["Health", "Requests", "Serving", "Jobs", "Workers", "Storage"]


def test_no_panel_lies_on_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells


def test_alerts_are_whole() -> None:
    names = [rule["alert"] for rule in ALERTS]
    assert len(names) == len(set(names))
    for rule in ALERTS:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"]
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_every_alert_is_explained() -> None:
    page = OPERATIONS.read_text("utf-8")
    assert [rule["alert"] for rule in ALERTS] == re.findall(r"^\| `(Temi\w+)`", page, re.MULTILINE)


def test_prometheus_reads_the_rules() -> None:
    folder = ROOT / "deploy/prometheus"
    config = yaml.safe_load((folder / "prometheus.yml").read_text("utf-8"))
    assert [(folder / name).is_file() for name in config["rule_files"]] == [True]
    jobs = {job["job_name"] for job in config["scrape_configs"]}
    assert jobs == {"temi-api", "temi-worker"}
