"""The fine-tuning loop; its interface is that of ``Trainer``."""

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor

from temi.backbones.base import Backbone, normalize
from temi.backbones.embedding import Picture
from temi.backbones.preprocessing import Preprocessing
from temi.device import resolve_device
from temi.errors import TemiError
from temi.finetune.config import FinetuneConfig
from temi.finetune.network import Network, network_optimizer, with_weights
from temi.model import ClusterModel
from temi.precision import autocast_to, matrix_dtype
from temi.training.head_groups import sub_state
from temi.training.heads import update_teacher
from temi.training.objectives import make_objective
from temi.training.objectives.teacher import agreement, uniform_log_occupancy, update_log_occupancy
from temi.training.sampling import PairSampler

LoadImages = Callable[[Sequence[int]], Iterable[Picture]]
"""Returns the images with these ids, in order; a ``Picture`` may be loaded in a thread."""

# Losses of fewer steps than this are too noisy to choose a head by.
_MIN_LOSS_WINDOW = 50


@dataclass(frozen=True, kw_only=True)
class FinetuneReport:
    step: int
    total_steps: int
    loss: float  # of the best head, averaged over the last epoch
    best_head: int
    done: bool


class Finetuner:
    """Trains backbone and heads together; row i of ``neighbors`` belongs to image i.

    ``models`` are the trained heads of one run (``Trainer.model``) on this backbone's features.
    A copy of the backbone is trained; the one passed in does not change.
    """

    def __init__(
        self,
        backbone: Backbone,
        models: Sequence[ClusterModel],
        load_images: LoadImages,
        neighbors: npt.NDArray[np.integer],
        config: FinetuneConfig,
        *,
        device: str = "auto",
    ) -> None:
        if neighbors.ndim != 2 or 0 in neighbors.shape:
            raise TemiError(f"neighbors must have shape (N, k), not {neighbors.shape}")
        self._backbone = backbone
        self._load_images = load_images
        self._device = resolve_device(device)
        self._student = Network(backbone, models).to(self._device)
        self._teacher = copy.deepcopy(self._student).requires_grad_(False)
        n_heads, n_clusters = len(models), models[0].n_clusters
        self.config = config = config.resolve(len(neighbors), n_clusters)
        assert config.steps is not None
        self.total_steps = config.steps
        self.images_per_step = config.batch_size
        self._objective = make_objective(config.as_training(n_clusters=n_clusters))
        self._optimizer = network_optimizer(self._student, weight_decay=config.weight_decay)
        self._log_occupancy = uniform_log_occupancy(n_heads, n_clusters).to(self._device)
        self._sampler = PairSampler(
            neighbors[:, : config.n_neighbors],
            config.batch_size,
            torch.Generator().manual_seed(config.seed),
            torch.device("cpu"),  # images are loaded there
        )
        window = max(_MIN_LOSS_WINDOW, -(-len(neighbors) // config.batch_size))
        self._losses = torch.zeros(window, n_heads, device=self._device)  # a ring buffer
        self._step = 0

    @property
    def step(self) -> int:
        return self._step

    @property
    def done(self) -> bool:
        return self._step >= self.total_steps

    def run(self, n_steps: int) -> FinetuneReport:
        """Train at most ``n_steps`` further steps and return a report."""
        for _ in range(n_steps):
            if self.done:
                break
            self._train_step()
        return self.report()

    def report(self) -> FinetuneReport:
        mean_losses = self._mean_losses()
        best = int(mean_losses.argmin())
        return FinetuneReport(
            step=self._step,
            total_steps=self.total_steps,
            loss=float(mean_losses[best]),
            best_head=best,
            done=self.done,
        )

    def finish(self) -> tuple[Backbone, ClusterModel]:
        """Return the teacher's backbone and its head with the lowest loss over the last epoch.

        The model works only on the features of this backbone.
        """
        backbone = with_weights(self._backbone, self._teacher.extractor.state_dict())
        return backbone, self._teacher.model(int(self._mean_losses().argmin()))

    def state(self) -> dict[str, Tensor]:
        """Return a checkpoint for ``load_state``."""
        state = {
            "step": torch.tensor(self._step),
            "losses": self._losses,
            "log_occupancy": self._log_occupancy,
        }
        parts: dict[str, Mapping[str, Tensor]] = {
            "student": self._student.state_dict(),
            "teacher": self._teacher.state_dict(),
            "optimizer": self._optimizer.state(),
            "sampler": self._sampler.state(),
        }
        for name, tensors in parts.items():
            state |= {f"{name}.{key}": tensor for key, tensor in tensors.items()}
        # Clones: training keeps changing the tensors while the caller stores these.
        return {name: tensor.detach().cpu().clone() for name, tensor in state.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore a checkpoint of a fine-tuner with the same images, models and settings."""
        own = self.state()
        different = own.keys() ^ state.keys()
        different |= {n for n in own.keys() & state.keys() if own[n].shape != state[n].shape}
        if different:
            names = ", ".join(sorted(different))
            raise TemiError(f"the state belongs to another fine-tuner: it differs in {names}")
        self._step = int(state["step"])
        self._losses = state["losses"].to(self._device, copy=True)
        self._log_occupancy = state["log_occupancy"].to(self._device, copy=True)
        self._student.load_state_dict(sub_state(state, "student"))
        self._teacher.load_state_dict(sub_state(state, "teacher"))
        self._optimizer.load_state(sub_state(state, "optimizer"), self._step)
        self._sampler.load_state(sub_state(state, "sampler"))

    def _train_step(self) -> None:
        config = self.config
        assert config.teacher_momentum is not None
        ids, rows_of_views = np.unique(self._sampler.sample().numpy(), return_inverse=True)
        pixels = self._load_pixels(ids.tolist())  # (n, S, S, 3): each image is loaded once
        rows = torch.from_numpy(rows_of_views)  # (2B,)
        self._losses[self._step % len(self._losses)] = self._backward(pixels, rows)
        warmup = self._warmup_factor()
        backbone_rate = warmup * config.backbone_learning_rate
        head_rate = warmup * config.head_learning_rate
        self._optimizer.step(backbone_rate, backbone_rate, head_rate, head_rate)
        update_teacher(self._teacher, self._student, config.teacher_momentum)
        self._step += 1

    def _backward(self, pixels: Tensor, rows: Tensor) -> Tensor:
        """Accumulate the student's gradients over the whole batch; returns the losses (H,)."""
        micro_batches = list(self._micro_batches())
        log_teacher = self._forward_teacher(pixels, rows, micro_batches)
        weights = self._objective.pair_weights(agreement(log_teacher))  # (H, B)
        total = torch.zeros_like(self._losses[0])
        for pairs, views in micro_batches:
            log_student = self._log_probs(self._student, pixels[rows[views]])  # (H, 2b, C)
            losses = self._objective.losses(
                log_student, log_teacher[:, views], self._log_occupancy, weights[:, pairs]
            )
            losses = losses * (len(pairs) / self.config.batch_size)
            torch.autograd.backward(losses.mean())
            total += losses.detach()
        return total

    @torch.no_grad()
    def _forward_teacher(
        self, pixels: Tensor, rows: Tensor, micro_batches: "list[_MicroBatch]"
    ) -> Tensor:
        """Return the teacher's log-probabilities (H, 2B, C) and update the occupancy with them."""
        firsts, seconds = [], []
        for _, views in micro_batches:
            first, second = self._log_probs(self._teacher, pixels[rows[views]]).chunk(2, dim=1)
            firsts.append(first)
            seconds.append(second)
        log_teacher = torch.cat(firsts + seconds, dim=1)
        self._log_occupancy = update_log_occupancy(
            self._log_occupancy, log_teacher, self._occupancy_momentum()
        )
        return log_teacher

    def _log_probs(self, network: Network, pixels: Tensor) -> Tensor:
        images = normalize(pixels.to(self._device), self._backbone.preprocessing)
        with autocast_to(matrix_dtype(self._backbone.precision), self._device):
            log_probs: Tensor = network(images)
        return log_probs

    def _micro_batches(self) -> "Iterator[_MicroBatch]":
        """Yield parts of a batch that fit in memory: pairs (b,), and rows of both views (2b,).

        The gradients of the parts add up to those of the batch, because the loss of a pair does
        not depend on the student's output for other pairs. In SCAN it does, so its batch is not
        split.
        """
        n_pairs = self.config.batch_size
        size = n_pairs if self.config.objective == "scan" else self.config.pairs_at_once
        for pairs in torch.split(torch.arange(n_pairs), size):
            yield pairs, torch.cat([pairs, pairs + n_pairs])

    def _warmup_factor(self) -> float:
        assert self.config.warmup_steps is not None
        return min(1.0, (self._step + 1) / max(1, self.config.warmup_steps))

    def _occupancy_momentum(self) -> float:
        """Start with a plain mean of the batches so far, counting the uniform start as one.

        The heads are trained, so their occupancy is meaningful from the first step.
        """
        return min(self.config.occupancy_momentum, (self._step + 1) / (self._step + 2))

    def _mean_losses(self) -> Tensor:
        seen = min(self._step, len(self._losses))
        return self._losses[: max(seen, 1)].mean(dim=0)  # (H,)

    def _load_pixels(self, ids: list[int]) -> Tensor:
        pictures = self._load_images(ids)
        return read_pixels(self._backbone.preprocessing, pictures, len(ids))


_MicroBatch = tuple[Tensor, Tensor]


def read_pixels(preprocessing: Preprocessing, pictures: Iterable[Picture], n: int) -> Tensor:
    """Load exactly ``n`` images as (n, S, S, 3) in uint8, in threads, a few at a time."""
    pixels = preprocessing.new_batch(n)

    def fill(index: int, picture: Picture) -> None:
        preprocessing.fill(pixels[index], picture() if callable(picture) else picture)

    threads = torch.get_num_threads()
    waiting: deque[Future[None]] = deque()
    given = 0
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads, "read") as pool:
        try:
            for given, picture in enumerate(pictures, start=1):
                if given > n:
                    break
                waiting.append(pool.submit(fill, given - 1, picture))
                if len(waiting) > 2 * threads:
                    waiting.popleft().result()
            for future in waiting:
                future.result()
        finally:
            for future in waiting:
                future.cancel()
    if given != n:
        count = given if given < n else f"more than {n}"
        raise TemiError(f"load_images returned {count} images for {n} ids")
    return torch.from_numpy(pixels)
