"""The manifests agree with Kubernetes' schemas, the commands, the settings and each other."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer
import yaml

from app.cli import app
from app.core.jobs.kinds import kinds_for
from app.core.platform.settings import Settings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/kubernetes"
SETTINGS = {f"TEMI_{name.upper()}" for name in Settings.model_fields}
VERSIONS = ("1.30", "1.34")  # the oldest and the newest that were tried


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(FOLDER.rglob("*.yaml")):
        if path.name != "kustomization.yaml":
            for found in yaml.safe_load_all(path.read_text("utf-8")):
                yield f"{path.parent.name}/{found['kind']}/{found['metadata']['name']}", found


OBJECTS = dict(documents())
STANDARD = [name for name, found in OBJECTS.items() if found["kind"] != "ScaledObject"]
PODS = {
    name: found["spec"]["template"]
    for name, found in OBJECTS.items()
    if found["kind"] in ("Deployment", "Job")
}
CONFIG: dict[str, str] = OBJECTS["setup/ConfigMap/temi"]["data"]
SECRET: dict[str, str] = OBJECTS["setup/Secret/temi"]["stringData"]
SCALED = OBJECTS["keda/ScaledObject/temi-worker-gpu"]
POLICIES = {
    "temi-closed",
    "temi-names",
    "temi-api",
    "temi-worker",
    "temi-migrate",
    "temi-postgres",
    "temi-redis",
    "temi-store",
}
IMAGES = {"temi-service-cpu": "-cpu", "temi-service-cuda": "-cuda"}

every_pod = pytest.mark.parametrize("name", PODS)


def container(name: str) -> dict[str, Any]:
    (only,) = PODS[name]["spec"]["containers"]
    found: dict[str, Any] = only
    return found


def environment(name: str) -> dict[str, str]:
    given = {entry["name"]: entry["value"] for entry in container(name).get("env", [])}
    return CONFIG | given


def test_all_parts_are_there() -> None:
    assert set(OBJECTS) == {
        "setup/Namespace/temi",
        "setup/ConfigMap/temi",
        "setup/Secret/temi",
        *(f"setup/NetworkPolicy/{name}" for name in POLICIES),
        "migrate/Job/temi-migrate",
        "service/PersistentVolumeClaim/temi-uploads",
        "service/Deployment/temi-api",
        "service/Service/temi-api",
        "service/HorizontalPodAutoscaler/temi-api",
        "service/PodDisruptionBudget/temi-api",
        "service/Deployment/temi-worker-cpu",
        "service/Deployment/temi-worker-gpu",
        "service/PodDisruptionBudget/temi-worker-cpu",
        "keda/ScaledObject/temi-worker-gpu",
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", STANDARD)
def test_schema(name: str, version: str) -> None:
    kubernetes_validate.validate(OBJECTS[name], version, strict=True)


def test_the_schema_finds_mistakes() -> None:
    broken = OBJECTS["service/Service/temi-api"] | {"specs": {}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("folder", ["setup", "migrate", "service", "keda"])
def test_every_file_is_applied_but_the_example(folder: str) -> None:
    kustomization = yaml.safe_load((FOLDER / folder / "kustomization.yaml").read_text("utf-8"))
    files = {path.name for path in (FOLDER / folder).glob("*.yaml")}
    assert set(kustomization["resources"]) == files - {"kustomization.yaml", "secret.example.yaml"}
    used = {container(name)["image"] for name in PODS if name.startswith(f"{folder}/")}
    named = {image["name"]: image["newTag"] for image in kustomization.get("images", [])}
    assert set(named) == used
    assert all(tag.endswith(IMAGES[image]) for image, tag in named.items())


@pytest.mark.parametrize("name", [name for name in OBJECTS if name != "setup/Namespace/temi"])
def test_everything_is_in_the_namespace(name: str) -> None:
    assert OBJECTS[name]["metadata"]["namespace"] == "temi"


@every_pod
def test_command_exists(name: str) -> None:
    found: Any = typer.main.get_command(app)
    for word in container(name)["args"]:
        found = vars(found)["commands"][word]


@every_pod
def test_settings_accept_environment_and_secrets(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert container(name)["envFrom"] == [{"configMapRef": {"name": "temi"}}]
    assert set(environment(name)) <= SETTINGS
    assert {key.upper() for key in SECRET} <= SETTINGS
    for key, value in environment(name).items():
        monkeypatch.setenv(key, value)
    for key, value in SECRET.items():
        (tmp_path / key).write_text(value)
    settings = Settings(_env_file=None, _secrets_dir=tmp_path)
    assert settings.database_url == SECRET["temi_database_url"]
    assert settings.broker_url == SECRET["temi_broker_url"]
    assert settings.api_key is not None


@every_pod
def test_nobody_is_root_and_nothing_is_written_beside_the_volumes(name: str) -> None:
    pod, only = PODS[name]["spec"], container(name)
    assert pod["securityContext"]["runAsNonRoot"] is True
    user = pod["securityContext"]["runAsUser"]
    assert f"USER {user}\n" in (ROOT / "Dockerfile").read_text("utf-8")
    assert only["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounts = {mount["name"]: mount["mountPath"] for mount in only["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]}
    assert {environment(name)["TEMI_DATA_DIR"], "/tmp", "/run/secrets"} <= set(mounts.values())
    assert pod["automountServiceAccountToken"] is False


@pytest.mark.parametrize("name", [name for name in PODS if "Deployment" in name])
def test_pods_are_found_and_looked_after(name: str) -> None:
    labels = PODS[name]["metadata"]["labels"]
    assert OBJECTS[name]["spec"]["selector"]["matchLabels"] == labels
    only = container(name)
    (port,) = only["ports"]
    api = name.endswith("api")
    variable = "TEMI_PORT" if api else "TEMI_METRICS_PORT"
    assert environment(name)[variable] == str(port["containerPort"])
    assert PODS[name]["metadata"]["annotations"]["prometheus.io/port"] == str(port["containerPort"])
    probes = [probe for probe in only if probe.endswith("Probe")]
    paths = {probe: only[probe]["httpGet"]["path"] for probe in probes}
    if api:
        assert paths.pop("readinessProbe") == "/readyz"
    assert paths == dict.fromkeys(
        ["startupProbe", "livenessProbe"], "/livez" if api else "/metrics"
    )
    assert {only[probe]["httpGet"]["port"] for probe in probes} == {port["name"]}
    assert PODS[name]["spec"]["terminationGracePeriodSeconds"] >= 30


@pytest.mark.parametrize(
    "name", [n for n in OBJECTS if "PodDisruptionBudget" in n or "Service/" in n]
)
def test_selectors_meet_pods(name: str) -> None:
    selector = OBJECTS[name]["spec"]["selector"]
    labels = selector.get("matchLabels", selector)
    deployment = OBJECTS[f"service/Deployment/{name.rpartition('/')[2]}"]
    assert labels.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()


def test_what_is_scaled_exists_and_is_left_to_the_scaler() -> None:
    scaler = OBJECTS["service/HorizontalPodAutoscaler/temi-api"]["spec"]
    for target in (scaler["scaleTargetRef"]["name"], SCALED["spec"]["scaleTargetRef"]["name"]):
        assert "replicas" not in OBJECTS[f"service/Deployment/{target}"]["spec"]


def test_gpus_go_to_those_who_take_them() -> None:
    cpu, gpu = "service/Deployment/temi-worker-cpu", "service/Deployment/temi-worker-gpu"
    assert container(gpu)["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert "nvidia.com/gpu" not in container(cpu)["resources"]["limits"]
    assert environment(gpu)["TEMI_WORKER_TAKES"] == "gpu"
    assert environment(cpu)["TEMI_WORKER_TAKES"] == "cpu"
    assert container(gpu)["image"] == "temi-service-cuda"


def test_gpu_workers_follow_the_jobs_that_are_theirs() -> None:
    """A resource of KEDA's, whose schema is no part of Kubernetes."""
    assert SCALED["apiVersion"] == "keda.sh/v1alpha1"
    spec = SCALED["spec"]
    counts = ("pollingInterval", "cooldownPeriod", "minReplicaCount", "maxReplicaCount")
    assert set(spec) == {"scaleTargetRef", *counts, "advanced", "triggers"}
    assert all(isinstance(spec[name], int) for name in counts)
    assert spec["minReplicaCount"] < spec["maxReplicaCount"]
    (trigger,) = spec["triggers"]
    assert set(trigger) == {"type", "metadata"}
    assert trigger["type"] == "prometheus"
    assert set(trigger["metadata"]) == {"serverAddress", "query", "threshold"}
    assert all(isinstance(value, str) for value in trigger["metadata"].values())
    query = trigger["metadata"]["query"]
    assert query.count("(") == query.count(")")
    (kinds,) = re.findall(r'kind=~"([a-z|]+)"', query)
    assert sorted(kinds.split("|")) == sorted(kinds_for(["gpu"]))
    assert "| `temi_jobs` | kind, status |" in (ROOT / "docs/operations.md").read_text("utf-8")


def selected(policy: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether a pod selector means a pod with these labels."""
    wanted = policy.get("matchLabels", {}).items() <= labels.items()
    return wanted and all(
        labels.get(rule["key"]) in rule["values"] for rule in policy.get("matchExpressions", [])
    )


def policies(labels: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in POLICIES:
        spec = OBJECTS[f"setup/NetworkPolicy/{name}"]["spec"]
        if selected(spec["podSelector"], labels):
            yield name, spec


def ports(spec: dict[str, Any], way: str) -> set[int]:
    return {port["port"] for rule in spec.get(way, []) for port in rule["ports"]}


def test_the_namespace_is_closed_by_default() -> None:
    spec = OBJECTS["setup/NetworkPolicy/temi-closed"]["spec"]
    assert spec == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@every_pod
def test_a_pod_reaches_what_it_needs_and_no_more(name: str) -> None:
    found = dict(policies(PODS[name]["metadata"]["labels"]))
    own = {"migrate": "temi-migrate", "temi-api": "temi-api"}
    part = next((found_name for key, found_name in own.items() if key in name), "temi-worker")
    assert set(found) == {"temi-closed", "temi-names", part}
    out = set().union(*(ports(spec, "egress") for spec in found.values()))
    assert out == ({53, 5432} if "migrate" in name else {53, 5432, 6379, 443, 9000})
    offered = {port["containerPort"] for port in container(name).get("ports", [])}
    assert ports(found[part], "ingress") == offered


def test_no_pod_reaches_the_credentials_of_its_machine() -> None:
    for name in POLICIES:
        spec = OBJECTS[f"setup/NetworkPolicy/{name}"]["spec"]
        blocks = [to["ipBlock"] for rule in spec.get("egress", []) for to in rule["to"]
                  if "ipBlock" in to]  # fmt: skip
        assert all(block["except"] == ["169.254.0.0/16"] for block in blocks)


@pytest.mark.parametrize(("server", "port"), [("postgres", 5432), ("redis", 6379), ("store", 9000)])
def test_servers_are_reached_by_the_service_alone(server: str, port: int) -> None:
    found = dict(policies({"app.kubernetes.io/component": server}))
    assert set(found) == {"temi-closed", f"temi-{server}"}
    spec = found[f"temi-{server}"]
    assert ports(spec, "ingress") == {port}
    assert "egress" not in spec
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    (rule,) = spec["ingress"]
    (peer,) = rule["from"]
    let_in = {
        name for name in PODS if selected(peer["podSelector"], PODS[name]["metadata"]["labels"])
    }
    assert let_in == {name for name in PODS if server == "postgres" or "migrate" not in name}
    assert not selected(peer["podSelector"], {"app.kubernetes.io/name": "other"})


@every_pod
def test_the_system_calls_of_a_pod_are_filtered_and_its_memory_is_bounded(name: str) -> None:
    context = PODS[name]["spec"]["securityContext"]
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "memory" in container(name)["resources"]["limits"]


def test_a_worker_has_room_for_the_largest_training_that_is_accepted() -> None:
    most = Settings.model_fields["max_job_bytes"].default
    for worker in ("temi-worker-cpu", "temi-worker-gpu"):
        limit = container(f"service/Deployment/{worker}")["resources"]["limits"]["memory"]
        assert int(limit.removesuffix("Gi")) * 1024**3 > most
