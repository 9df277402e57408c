"""What a job needs, so that workers on machines of different kinds take what they are good at."""

from collections.abc import Collection
from typing import Literal

Resource = Literal["cpu", "gpu"]
RESOURCES: tuple[Resource, ...] = ("cpu", "gpu")
BFLOAT16 = "bfloat16"  # instructions for it: the hardware has them or not, whatever is set
EVERYTHING = (*RESOURCES, BFLOAT16)

# A GPU is used if there is one: on a machine without one, `gpu` jobs take the CPU.
_NEEDS: dict[str, Resource] = {
    "ingest": "cpu",
    "cluster": "gpu",
    "sweep": "gpu",
    "finetune": "gpu",
    "predict": "gpu",
    "map": "cpu",
    "export": "cpu",
}


def needs_of(kind: str) -> Resource:
    return _NEEDS[kind]


def kinds_for(takes: Collection[str]) -> list[str]:
    """The kinds of job for a worker that takes these resources."""
    return [kind for kind, needs in _NEEDS.items() if needs in takes]
