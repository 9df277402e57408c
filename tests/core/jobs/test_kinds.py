"""Requests, CLI and client cover the table of job kinds."""

from typing import get_args

from typer.core import TyperGroup
from typer.main import get_command

from app.cli import job_start
from app.core.jobs.kinds import KINDS, KindName
from app.core.jobs.requests.job_create import JobCreate
from temi_client import TemiClient

REQUESTED = set(KINDS) - {"ingest"}  # an upload or a source starts an ingest job
METHODS = {"predict": "predict_dataset"}  # `predict` predicts single images


def test_the_table_has_every_kind_name() -> None:
    assert tuple(KINDS) == get_args(KindName)


def test_every_kind_has_a_request_model() -> None:
    union, _discriminator = get_args(JobCreate)
    tags = {get_args(member)[0]: get_args(member)[1].tag for member in get_args(union)}
    assert set(tags.values()) == REQUESTED
    for model, tag in tags.items():
        assert get_args(model.model_fields["kind"].annotation) == (tag,)


def test_every_kind_has_a_command() -> None:
    group = get_command(job_start.app)
    assert isinstance(group, TyperGroup)
    assert set(group.commands) == REQUESTED


def test_every_kind_has_a_client_method() -> None:
    assert all(hasattr(TemiClient, METHODS.get(kind, kind)) for kind in REQUESTED)
