"""Training settings are defined by `TrainConfig`; requests and commands must agree with it."""

import inspect
from dataclasses import MISSING, fields
from typing import Any, get_args, get_type_hints

import annotated_types
import pytest
from pydantic import BaseModel

from app.cli import cluster as local_command
from app.cli import job_start
from app.core.jobs.requests.cluster import ClusterCreate
from app.core.jobs.requests.finetune import FinetuneCreate
from app.core.jobs.requests.sweep import SweepCreate
from app.core.jobs.requests.training import config_settings
from temi.config import TrainConfig
from temi.errors import InvalidConfig
from temi.finetune.config import FinetuneConfig

TRAINING = {field.name: field for field in fields(TrainConfig)}
NOT_IN_REQUESTS = {  # chosen by the recipe or for the size of the dataset
    "n_teams",
    "scan_entropy_weight",
    "smoothing",
    "temperature",
    "hidden_dim",
    "bottleneck_dim",
    "occupancy_momentum",
    "teacher_momentum",
    "batch_size",
    "learning_rate",
    "warmup_steps",
    "cooldown",
    "weight_decay",
    "projection_dim",
    "early_stop",
}
SERVICE_OPTIONS = {"wait", "server", "api_key", "as_json"}


def settings_of(request: type[BaseModel], config: Any = TrainConfig) -> set[str]:
    return {field.name for field in fields(config)} & set(request.model_fields)


def literals(annotation: Any) -> set[str]:
    """Returns the texts of a Literal, also inside a union or Annotated."""
    found = {arg for arg in get_args(annotation) if isinstance(arg, str)}
    return found.union(*(literals(arg) for arg in get_args(annotation) if get_args(arg)))


def option_names(command: Any) -> dict[str, Any]:
    """Returns the annotations of a command by request field: `--heads` is `n_heads`."""
    renamed = {f"{name.removeprefix('n_')}": name for name in ClusterCreate.model_fields}
    renamed["value"] = "values"
    hints = get_type_hints(command, include_extras=True)
    names = inspect.signature(command).parameters.keys() - {"ctx"}
    return {renamed.get(name, name): hints[name] for name in names}


def test_every_training_setting_is_requested_or_internal() -> None:
    assert settings_of(ClusterCreate) == set(TRAINING) - NOT_IN_REQUESTS
    assert settings_of(SweepCreate) == settings_of(ClusterCreate) - {"epochs"}


@pytest.mark.parametrize(
    ("request_model", "config"),
    [(ClusterCreate, TrainConfig), (SweepCreate, TrainConfig), (FinetuneCreate, FinetuneConfig)],
)
def test_defaults_are_those_of_the_configuration(
    request_model: type[BaseModel], config: Any
) -> None:
    for field in fields(config):
        requested = request_model.model_fields.get(field.name)
        if requested is None or requested.is_required() or field.default is MISSING:
            continue
        assert requested.default in (None, field.default), field.name


@pytest.mark.parametrize("name", sorted(set(TRAINING) - NOT_IN_REQUESTS))
def test_limits_of_a_request_are_accepted_by_the_configuration(name: str) -> None:
    for bound in ClusterCreate.model_fields[name].metadata:
        if isinstance(bound, annotated_types.Ge | annotated_types.Le):
            value = getattr(bound, "ge", None) or getattr(bound, "le", None) or 0
            TrainConfig.from_dict({"n_clusters": 2, name: value})


@pytest.mark.parametrize("name", ["objective", "precision"])
def test_choices_are_those_of_the_configuration(name: str) -> None:
    choices = literals(ClusterCreate.model_fields[name].annotation)
    for choice in choices:
        TrainConfig.from_dict({"n_clusters": 2, name: choice})
    with pytest.raises(InvalidConfig) as refused:
        TrainConfig.from_dict({"n_clusters": 2, name: "other"})
    listed = refused.value.message.removeprefix("must be one of ").removesuffix(", not 'other'")
    assert set(listed.split(", ")) == choices


@pytest.mark.parametrize(
    ("command", "request_model"),
    [(job_start.cluster, ClusterCreate), (job_start.sweep, SweepCreate)],
)
def test_commands_have_an_option_for_every_field(
    command: Any, request_model: type[BaseModel]
) -> None:
    options = option_names(command)
    assert set(options) - SERVICE_OPTIONS == set(request_model.model_fields) - {"kind"}
    for name in ("objective", "precision", "exclude_duplicates"):
        assert literals(options[name]) == literals(request_model.model_fields[name].annotation)


def test_options_of_the_folder_command_are_fields_of_the_request() -> None:
    options = option_names(local_command.cluster)
    settings = {name: hint for name, hint in options.items() if name in TRAINING}
    assert set(settings) == {
        *("n_clusters", "objective", "select", "n_heads", "beta", "steps", "seed"),
    }
    assert literals(settings["objective"]) == literals(
        ClusterCreate.model_fields["objective"].annotation
    )


def test_a_configuration_gets_the_fields_that_it_has() -> None:
    request = ClusterCreate(dataset_id="ds_1", n_clusters=3, beta=0.7)
    given = config_settings(request, TrainConfig)
    assert set(given) == settings_of(ClusterCreate)
    assert (given["n_clusters"], given["beta"], given["steps"]) == (3, 0.7, None)
