"""Estimates the memory of a training run before it starts.

The estimate depends only on the settings and the size of the set, not on the memory or load of
this machine. `benchmarks/training_memory.py` compares it with real processes. Memory-mapped files
(features, neighbors) are not counted, because the operating system drops their pages when memory
is short.
"""

from dataclasses import dataclass

from temi.config import TrainConfig

# Transformed rows up to this size are kept in memory; larger sets are transformed per batch. A
# fixed size, not a share of this machine's memory: a run rounds the same on every machine.
RESIDENT_BYTES = 4 << 30
_FLOAT = 4
_PROCESS = 800 << 20  # Python with torch, faiss and scikit-learn, before any work
# Student, teacher, and the two averages of the optimizer.
_TRAINED_COPIES = 4
# A checkpoint is gathered over all heads, cloned, and written as one file.
_CHECKPOINT_COPIES = 3 * _TRAINED_COPIES
# Logits, probabilities and the tensors saved for the backward pass, of one group's student.
_ACTIVATIONS = 8
_GROUP_HEADS = 2  # heads per group on a CPU
_PARALLEL_GROUPS = 4  # one per core; machines with more cores use more than the estimate
_BYTES_PER_ROW = 64  # the sampled pairs of an epoch
_SMOOTHED = 256  # directions of a row that is smoothed, twice in memory
_BYTES_OF_EDGES = 2 * 10 * 24  # of a row in the graph, while it is made symmetric
# The consensus is found on this many rows; more hardly change it.
CONSENSUS_ROWS = 20_000
# The model is distilled from this many rows, or this many per cluster.
_DISTILLED_ROWS = 20_000
_DISTILLED_ROWS_PER_CLUSTER = 200
_COVARIANCES = 4  # in double precision, while the principal directions are computed


@dataclass(frozen=True, kw_only=True)
class MemoryEstimate:
    """Bytes by purpose."""

    process: int
    parameters: int
    rows: int
    step: int  # activations of teachers and students in one step
    checkpoint: int

    @property
    def total(self) -> int:
        """The peak; checkpoints and steps never overlap."""
        return self.process + self.parameters + self.rows + max(self.step, self.checkpoint)


def distilled_rows(n_clusters: int, n_images: int) -> int:
    """Return the number of rows from which the model is distilled."""
    return min(n_images, max(_DISTILLED_ROWS, _DISTILLED_ROWS_PER_CLUSTER * n_clusters))


def estimate_memory(config: TrainConfig, n_images: int, feature_dim: int) -> MemoryEstimate:
    """Estimate the memory of one training run in one process on a CPU."""
    config = config.resolve(n_images)
    dim = min(config.projection_dim or feature_dim, feature_dim)
    one_copy = _FLOAT * config.n_heads * _parameters_per_head(config, dim)
    resident = _FLOAT * n_images * dim
    return MemoryEstimate(
        process=_PROCESS,
        parameters=_TRAINED_COPIES * one_copy,
        rows=(resident if resident <= RESIDENT_BYTES else 0)
        + _smoothing_bytes(config, n_images, max(0, 2 * min(_SMOOTHED, feature_dim) - dim))
        + _BYTES_PER_ROW * n_images
        + _COVARIANCES * 8 * feature_dim**2,
        step=max(_step_bytes(config), _joining_bytes(config, n_images)),
        checkpoint=_CHECKPOINT_COPIES * one_copy,
    )


def _smoothing_bytes(config: TrainConfig, n_images: int, more: int) -> int:
    """Pairs, edges of the graph, and rows while they are smoothed, which have ``more`` dimensions
    than the inputs that are kept afterwards."""
    if not config.smoothing:
        return 0
    assert config.n_neighbors is not None
    return n_images * (_FLOAT * more + 8 * config.n_neighbors + _BYTES_OF_EDGES)


def _joining_bytes(config: TrainConfig, n_images: int) -> int:
    """The probabilities of all heads twice, and the targets of the distillation."""
    if config.select == "lowest_loss":
        return 0
    joined = 2 * config.n_heads * min(n_images, CONSENSUS_ROWS)
    return _FLOAT * config.n_clusters * (joined + distilled_rows(config.n_clusters, n_images))


def _step_bytes(config: TrainConfig) -> int:
    """The teachers' probabilities of all heads, and the students of the parallel groups."""
    assert config.batch_size is not None
    views = 2 * config.batch_size
    teachers = config.n_heads * views * config.n_clusters
    n_students = min(config.n_heads, _GROUP_HEADS * _PARALLEL_GROUPS)
    hidden, bottleneck = config.head_dims
    activations = views * (_ACTIVATIONS * config.n_clusters + 4 * hidden)
    prototypes = 4 * bottleneck * config.n_clusters
    return _FLOAT * (teachers + n_students * (activations + prototypes))


def _parameters_per_head(config: TrainConfig, dim: int) -> int:
    hidden, bottleneck = config.head_dims
    return (dim + 1) * hidden + (hidden + 1) * bottleneck + (bottleneck + 1) * config.n_clusters
