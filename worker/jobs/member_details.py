"""What a row keeps of a member besides its bytes: never so much that a list of rows is unwieldy."""

import json
from dataclasses import dataclass, field
from typing import Any

from app.core.datasets.rows import folder_label
from app.core.datasets.sources.base import Member, cut_text
from app.core.platform.settings import Settings


@dataclass(frozen=True)
class MemberDetails:
    name: str
    label: str | None
    attributes: dict[str, Any]
    notes: list[str] = field(default_factory=list)  # what was not kept


def member_details(member: Member, settings: Settings, *, by_folder: bool) -> MemberDetails:
    label, attributes = member.label, member.attributes
    if label is None and by_folder:
        label = folder_label(member.name)
    notes = [
        f"{what} cut: it has {len(text.encode()):,} bytes"
        for what, text in (("name", member.name), ("label", label or ""))
        if len(text.encode()) > settings.max_name_bytes
    ]
    if (size := len(json.dumps(attributes))) > settings.max_attributes_bytes:
        attributes = {}
        notes.append(f"attributes left out: they have {size:,} bytes")
    return MemberDetails(
        name=cut_text(member.name, settings.max_name_bytes),
        label=None if label is None else cut_text(label, settings.max_name_bytes),
        attributes=attributes,
        notes=notes,
    )
