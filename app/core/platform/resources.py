"""Resources that a job needs and a worker offers (`TEMI_WORKER_TAKES`)."""

from typing import Literal

Resource = Literal["cpu", "gpu"]
RESOURCES: tuple[Resource, ...] = ("cpu", "gpu")
BFLOAT16 = "bfloat16"  # CPU or GPU instructions for it: detected, not configured
ALL_RESOURCES = (*RESOURCES, BFLOAT16)
