"""The classes of an export: clusters with the same label are one class, in every format."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.exports.names import UniqueNames, clean_text, safe_name

EXCLUDED_FOLDER = "_excluded"


@dataclass(frozen=True)
class Classes:
    """Names in the order of the first cluster id of each, and the class of each cluster."""

    names: tuple[str, ...]
    ids: Mapping[int, int]  # cluster id -> class id, which is the index of its name

    @classmethod
    def of(cls, clusters: Mapping[int, str]) -> "Classes":
        """Labels are compared without control characters and repeated spaces."""
        numbers: dict[str, int] = {}
        ids = {
            cluster: numbers.setdefault(clean_text(label) or f"cluster {cluster}", len(numbers))
            for cluster, label in sorted(clusters.items())
        }
        return cls(tuple(numbers), ids)

    def id_of(self, cluster: int | None) -> int | None:
        return None if cluster is None else self.ids[cluster]

    def name_of(self, cluster: int | None) -> str | None:
        return None if cluster is None else self.names[self.ids[cluster]]

    def folders(self) -> list[str]:
        """A folder name for each class: safe on every file system, unique without its case."""
        unique = UniqueNames()
        unique.give(EXCLUDED_FOLDER)
        return [
            unique.give(safe_name(name, f"class {number}"))
            for number, name in enumerate(self.names)
        ]
