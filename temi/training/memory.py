"""How much memory a training will take, estimated before it starts.

A pure function of the settings and the size of the set: neither this machine's memory nor its
load decides it. Checked against real processes by `benchmarks/training_memory.py`. Files that are
only mapped (features, neighbors) are not counted, because the system drops their pages when it
needs the room.
"""

from dataclasses import dataclass

from temi.config import TrainConfig

# Prepared rows up to this size are kept in memory, others are prepared for each batch. A fixed
# size, not a share of this machine's memory: the same run rounds the same everywhere.
RESIDENT_BYTES = 4 << 30
_FLOAT = 4
_PROCESS = 800 << 20  # Python with torch, faiss and scikit-learn, before any work
# Student, teacher, and the two averages of the optimizer.
_TRAINED_COPIES = 4
# A checkpoint is collected over all heads, cloned, and written as one file.
_CHECKPOINT_COPIES = 3 * _TRAINED_COPIES
# Logits, probabilities, and what the gradient needs of them, of the student of one group.
_ACTIVATIONS = 6
_GROUP_HEADS = 2  # heads whose student is computed at once, on a CPU
_GROUPS_AT_ONCE = 4  # one a core; machines with more cores take more than is estimated
_BYTES_A_ROW = 64  # which pairs an epoch draws
_COVARIANCES = 4  # in double precision, while the principal directions are found


@dataclass(frozen=True, kw_only=True)
class MemoryEstimate:
    """Bytes by what they are for."""

    process: int
    parameters: int
    rows: int
    step: int  # teachers and students of one step
    checkpoint: int

    @property
    def total(self) -> int:
        """At the peak: no checkpoint is made during a step."""
        return self.process + self.parameters + self.rows + max(self.step, self.checkpoint)


def estimate_memory(config: TrainConfig, n_images: int, feature_dim: int) -> MemoryEstimate:
    """Of one training in one process on a CPU."""
    config = config.resolve(n_images)
    dim = min(config.projection_dim or feature_dim, feature_dim)
    one_copy = _FLOAT * config.n_heads * _parameters_of_head(config, dim)
    resident = _FLOAT * n_images * dim
    return MemoryEstimate(
        process=_PROCESS,
        parameters=_TRAINED_COPIES * one_copy,
        rows=(resident if resident <= RESIDENT_BYTES else 0)
        + _BYTES_A_ROW * n_images
        + _COVARIANCES * 8 * feature_dim**2,
        step=_step_bytes(config),
        checkpoint=_CHECKPOINT_COPIES * one_copy,
    )


def _step_bytes(config: TrainConfig) -> int:
    """The teachers' probabilities of all heads, and the students of the groups at work."""
    assert config.batch_size is not None
    views = 2 * config.batch_size
    taught = config.n_heads * views * config.n_clusters
    at_work = min(config.n_heads, _GROUP_HEADS * _GROUPS_AT_ONCE)
    activations = views * (_ACTIVATIONS * config.n_clusters + 4 * config.hidden_dim)
    prototypes = 4 * config.bottleneck_dim * config.n_clusters
    return _FLOAT * (taught + at_work * (activations + prototypes))


def _parameters_of_head(config: TrainConfig, dim: int) -> int:
    hidden, bottleneck = config.hidden_dim, config.bottleneck_dim
    return (dim + 1) * hidden + (hidden + 1) * bottleneck + (bottleneck + 1) * config.n_clusters
