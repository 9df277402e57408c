"""Names, labels and attributes of any length become rows of a bounded length."""

from app.core.datasets.sources.base import Member
from app.core.platform.settings import Settings
from worker.jobs.ingest_members import member_details

SETTINGS = Settings(_env_file=None, max_name_bytes=64, max_attributes_bytes=64)


def _member(name: str, **more: object) -> Member:
    return Member(0, name, lambda: b"", **more)  # type: ignore[arg-type]


def test_short_values_are_kept() -> None:
    member = _member("cats/a.png", attributes={"camera": "x"})
    found = member_details(member, SETTINGS, by_folder=True)
    assert (found.name, found.label, found.attributes) == ("cats/a.png", "cats", {"camera": "x"})
    assert found.notes == []


def test_long_names_and_labels_are_cut_in_whole_characters() -> None:
    found = member_details(_member("é" * 100, label="ß" * 40), SETTINGS, by_folder=False)
    assert (found.name, found.label) == ("é" * 32, "ß" * 32)
    assert found.notes == ["name cut: it has 200 bytes", "label cut: it has 80 bytes"]


def test_a_label_from_a_long_folder_name_is_cut() -> None:
    found = member_details(_member("f" * 100 + "/a.png"), SETTINGS, by_folder=True)
    assert found.label == "f" * 64


def test_attributes_that_are_too_long_are_left_out() -> None:
    member = _member("a.png", attributes={"text": "x" * 100})
    found = member_details(member, SETTINGS, by_folder=False)
    assert found.attributes == {}
    assert found.notes == ["attributes left out: they have 112 bytes"]
