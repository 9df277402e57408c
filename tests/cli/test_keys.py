"""`temi keys`, `temi audit`, and the check for a key before listening."""

import json
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.core.platform.settings import get_settings
from tests.client.live import Live
from tests.keys import make_key
from tests.servers import free_port

run = CliRunner().invoke


@pytest.fixture(autouse=True)
def _empty_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses an empty data folder, as before the first start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEMI_DATA_DIR", str(tmp_path / "data"))
    get_settings.cache_clear()


def _listed() -> list[dict[str, object]]:
    answer = run(app, ["keys", "list", "--json"])
    assert answer.exit_code == 0, answer.output
    found: list[dict[str, object]] = json.loads(answer.stdout)
    return found


def test_only_the_key_is_printed_to_stdout() -> None:
    answer = run(app, ["keys", "create", "phone"])
    assert answer.exit_code == 0, answer.output
    assert re.fullmatch(r"temi_[A-Za-z0-9_-]{43}\n", answer.stdout)
    (key,) = _listed()
    assert (key["tenant"], key["name"]) == ("default", "phone")
    assert key["scopes"] == ["read", "write", "predict"]
    assert str(key["id"]) in answer.stderr


def test_all_options_of_a_key() -> None:
    words = ["--tenant", "acme", "--scope", "predict", "--scope", "read", "--expires-days", "3"]
    words += ["--requests-per-minute", "60", "--storage-gb", "1.5"]
    assert run(app, ["keys", "create", "phone", *words]).exit_code == 0
    (key,) = _listed()
    assert (key["tenant"], key["scopes"]) == ("acme", ["read", "predict"])
    assert (key["requests_per_minute"], key["storage_bytes"]) == (60, 1_500_000_000)
    assert key["expires_at"] is not None
    table = run(app, ["keys", "list"]).stdout
    assert "acme" in table
    assert json.loads(run(app, ["keys", "list", "--tenant", "b", "--json"]).stdout) == []


def test_a_revoked_key_stays_listed() -> None:
    run(app, ["keys", "create", "phone"])
    (key,) = _listed()
    assert run(app, ["keys", "revoke", str(key["id"])]).exit_code == 0
    assert _listed()[0]["revoked_at"] is not None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["create", "x", "--scope", "all"], "scopes"),
        (["create", "x", "--tenant", "A B"], "tenant"),
        (["revoke", "key_none"], "no key key_none"),
    ],
)
def test_invalid_requests_fail(words: list[str], message: str) -> None:
    answer = run(app, ["keys", *words])
    assert answer.exit_code == 1
    assert message in answer.stderr
    assert answer.stdout == ""


@pytest.mark.parametrize("command", ["serve", "api"])
def test_listening_beyond_this_machine_needs_a_key(command: str) -> None:
    answer = run(app, [command, "--host", "0.0.0.0"])
    assert answer.exit_code == 2
    assert "temi keys create" in answer.stderr
    assert "TEMI_API_KEY" in answer.stderr


@pytest.mark.parametrize("revoked", [False, True])
def test_a_key_in_the_database_is_enough(monkeypatch: pytest.MonkeyPatch, revoked: bool) -> None:
    run(app, ["keys", "create", "phone"])
    if revoked:  # then all requests are refused, which is safe
        run(app, ["keys", "revoke", str(_listed()[0]["id"])])
    started: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda _program, words: started.append(words))
    answer = run(app, ["api", "--host", "0.0.0.0"])
    assert answer.exit_code == 0, answer.output
    assert started[0][-1] == "app.server"
    assert os.environ["TEMI_HOST"] == "0.0.0.0"  # which the server reads


def test_an_unreachable_database_prevents_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"postgresql+psycopg://temi@127.0.0.1:{free_port()}/temi"
    monkeypatch.setenv("TEMI_DATABASE_URL", url)
    answer = run(app, ["api", "--host", "0.0.0.0"])
    assert answer.exit_code == 2
    assert "database" in answer.stderr


def test_audit_log(live: Live) -> None:
    key_id, text = make_key(live.runtime, tenant="default", name="boss", scopes=["admin"])
    with live.client(api_key=text) as admin:
        dataset = next(admin.datasets())
        admin.rename_dataset(dataset.id, "new")
    words = ["--server", live.url, "--api-key", text, "audit", "--key", key_id]
    answer = run(app, [*words, "--json"])
    assert answer.exit_code == 0, answer.output
    (entry,) = json.loads(answer.stdout)
    assert (entry["key_id"], entry["method"]) == (key_id, "PATCH")
    assert "boss" in run(app, words).stdout
    assert json.loads(run(app, [*words, "--since", "2999-01-01", "--json"]).stdout) == []


def test_a_key_is_revoked_by_its_name() -> None:
    for name in ("anna", "ben", "ben"):
        assert run(app, ["keys", "create", name]).exit_code == 0
    assert "(anna)" in run(app, ["keys", "revoke", "anna"]).stderr
    assert run(app, ["keys", "revoke", "anna"]).exit_code == 2
    ambiguous = run(app, ["keys", "revoke", "ben"])
    assert ambiguous.exit_code == 2
    for key in _listed():
        assert (str(key["id"]) in ambiguous.stderr) == (key["name"] == "ben")
