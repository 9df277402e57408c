"""Costs of a collection by its size: measured constants, extrapolated.

.venv/bin/python -m benchmarks.scale_costs prints the table of docs/scale.md.
"""

from dataclasses import dataclass

SIZES = {"1 M": 1e6, "100 M": 1e8, "1 B": 1e9}
_DIM = 384
_HOUR = 3600.0
_GB = 1e9

# Measured on two cores (docs/benchmarks.md).
_INGEST = 704.0  # photos of 640 x 480 a second: decode, store, find copies, write rows
_DECODE_PER_CORE = 1_060.0  # JPEG files of 640 x 480 a second
_EMBED = 175.0  # images/s, EfficientNet-lite0
_MINE_MILLION = 412.0  # seconds, approximate, 384 features
_MINE_POWER = 1.6
_GFLOPS = 142.0  # of mining and training
_MINE_BYTES = 2_092.0  # of memory a row
_STEP_GFLOP = 19.9  # 16 heads, 256 pairs, 100 clusters (`temi.bench.train_gflop`)
_IMAGES_PER_STEP = 128  # by default a run sees every image twice, with 256 per step
_ASSIGN = 73_700.0  # images/s through the heads
_EXPORT = 24_651.0  # images/s read from PostgreSQL
_ROW_BYTES = 933.0  # of the database per image: its row, its assignment in one clustering, indexes

# From public figures of an A100 with 16 CPU cores; not measured.
_GPU_GFLOPS = 312_000 * 0.4  # bfloat16 peak times the share that large products reach
_GPU_EMBED_GFLOP = 9.2  # ViT-S/16, 384 features
_GPU_CORES = 16
_GPU_STEP_SECONDS = 0.002  # a step has many small products, each with its launch time

_CELLS_MOST = 32_768
_CELL_POWER = 0.6
_IMAGE_BYTES = 150_000.0  # a photo of 640 x 480
_NEIGHBORS = 50


@dataclass(frozen=True)
class Machine:
    name: str
    gpus: int  # 0: two CPU cores

    @property
    def speed(self) -> float:
        """The speed relative to two cores, in large products."""
        return self.gpus * _GPU_GFLOPS / _GFLOPS if self.gpus else 1.0

    @property
    def cores(self) -> float:
        return self.gpus * _GPU_CORES / 2 if self.gpus else 1.0

    @property
    def embeds(self) -> float:
        """Images per second, limited by the GPUs or by decoding on the cores."""
        if not self.gpus:
            return _EMBED
        forward = self.gpus * _GPU_GFLOPS / _GPU_EMBED_GFLOP
        return min(forward, self.gpus * _GPU_CORES * _DECODE_PER_CORE)


MACHINES = (Machine("2 cores", 0), Machine("1 GPU", 1), Machine("50 GPUs", 50))


def mine_seconds(n: float) -> float:
    """Return the time on two cores. Above the maximum number of cells, queries scan more rows."""
    full: float = _CELLS_MOST ** (1 / _CELL_POWER)
    grown: float = (min(n, full) / 1e6) ** _MINE_POWER * max(1.0, n / full) ** 2
    return _MINE_MILLION * grown


def step_seconds(machine: Machine) -> float:
    computing = _STEP_GFLOP / (_GFLOPS * machine.speed)
    return max(computing, _GPU_STEP_SECONDS) if machine.gpus else computing


def stages(n: float, machine: Machine) -> dict[str, float]:
    """Return the hours of each stage. Training uses one host, so 50 GPUs train as fast as 8."""
    trainer = Machine("", min(machine.gpus, 8))
    return {
        "ingest": n / (_INGEST * machine.cores) / _HOUR,
        "embed": n / machine.embeds / _HOUR,
        "mine": mine_seconds(n) / machine.speed / _HOUR,
        "train": n / _IMAGES_PER_STEP * step_seconds(trainer) / _HOUR,
        "assign": n / (_ASSIGN * machine.cores) / _HOUR,
        "export": n / _EXPORT / _HOUR,
    }


def storage_gb(n: float) -> dict[str, float]:
    return {
        "images": n * _IMAGE_BYTES / _GB,
        "features": n * 4 * _DIM / _GB,
        "neighbors": n * 4 * _NEIGHBORS / _GB,
        "database": n * _ROW_BYTES / _GB,
    }


def memory_gb(n: float) -> float:
    """Return the memory of mining, the largest stage, over all machines."""
    return n * _MINE_BYTES / _GB


def table() -> str:
    names = list(stages(1.0, MACHINES[0]))
    lines = [
        f"| images | machine | {' | '.join(names)} | all, hours |",
        "|---|---|" + "---|" * (len(names) + 1),
    ]
    for size, n in SIZES.items():
        for machine in MACHINES:
            hours = stages(n, machine)
            shown = " | ".join(_show(hours[name]) for name in names)
            lines.append(f"| {size} | {machine.name} | {shown} | {_show(sum(hours.values()))} |")
    kinds = list(storage_gb(1.0))
    lines += [
        "",
        f"| images | {', GB | '.join(kinds)}, GB | memory of mining, GB |",
        "|---|" + "---|" * (len(kinds) + 1),
    ]
    for size, n in SIZES.items():
        shown = " | ".join(_show(value) for value in storage_gb(n).values())
        lines.append(f"| {size} | {shown} | {_show(memory_gb(n))} |")
    return "\n".join(lines)


def _show(value: float) -> str:
    if value < 0.01:
        return "< 0.01"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


if __name__ == "__main__":
    print(table())
