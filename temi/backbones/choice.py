"""Which form of a backbone to serve with: the fastest here that gives the same labels."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from temi.backbones.base import Backbone
from temi.backbones.forms import LOSSY, MAKERS, ON_GPU, Form

LEAST_AGREEMENT = 0.99  # of the labels of a sample
LEAST_SAMPLE = 64  # pictures, to judge a form that rounds
_LEAST_GAIN = 1.05
_ROUNDS = 7
_CPU_BATCH = 4
_GPU_BATCH = 64

Label = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What was found out about a form."""

    form: str
    agreement: float | None = None  # share of the sample with the same label as the plain form
    alone_ms: float | None = None  # one picture, all cores
    batched_ms: float | None = None  # a picture of a batch, one core
    refused: str | None = None  # why it is out of the question

    @property
    def cost(self) -> float:
        """Those who ask alone and those who come in crowds count the same."""
        return math.sqrt((self.alone_ms or math.inf) * (self.batched_ms or math.inf))


@dataclass(frozen=True, kw_only=True)
class Choice:
    form: Form
    trials: tuple[Trial, ...]
    sample: int  # pictures that labels were compared on


def batch_size(backbone: Backbone) -> int:
    """Layers of a few images fit into a core's cache; a GPU wants many at once."""
    return _CPU_BATCH if backbone.device.type == "cpu" else _GPU_BATCH


def choose_form(
    backbone: Backbone, names: Sequence[str], sample: Tensor, label: Label, threads: int
) -> Choice:
    """Make and measure the named forms; `sample` are real pictures (N, S, S, 3), or none.

    Without pictures, noise shows whether a form computes the same, and forms that round are left
    out: labels of noise say little about those of photos.
    """
    judge = _Judge(backbone, sample, label, threads)
    plain = MAKERS["torch"](backbone, sample)
    judge.expected = label(judge.features(plain))
    forms: dict[str, Form] = {"torch": plain}
    trials = {"torch": Trial(form="torch", agreement=1.0)}
    for name in names:
        if name not in trials:
            form, trials[name] = judge.try_form(name)
            if form is not None:
                forms[name] = form
    for name, (alone, batched) in judge.measure(forms).items():
        trials[name] = replace(trials[name], alone_ms=alone, batched_ms=batched)
    best = min(forms, key=lambda name: trials[name].cost)
    if trials["torch"].cost < trials[best].cost * _LEAST_GAIN:
        best = "torch"
    return Choice(form=forms[best], trials=tuple(trials.values()), sample=judge.real)


class _Judge:
    """One sample, one way to label it, for all forms."""

    expected: npt.NDArray[np.int64]

    def __init__(self, backbone: Backbone, sample: Tensor, label: Label, threads: int) -> None:
        self.real = len(sample)
        self._backbone = backbone
        self._sample = _filled_up(sample, backbone.preprocessing.size)
        self._label = label
        self._threads = threads
        self._batch = batch_size(backbone)

    def try_form(self, name: str) -> tuple[Form | None, Trial]:
        if reason := self._unfit(name):
            return None, Trial(form=name, refused=reason)
        try:
            form = MAKERS[name](self._backbone, self._sample)
            found = self._label(self.features(form))
        except Exception as error:  # noqa: BLE001 - a form that cannot be made is not taken
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            return None, Trial(form=name, refused=reason)
        agreement = float((found == self.expected).mean())
        if agreement < LEAST_AGREEMENT:
            reason = f"labels agree on {agreement:.1%} of {len(self._sample)} pictures only"
            return None, Trial(form=name, agreement=agreement, refused=reason)
        return form, Trial(form=name, agreement=agreement)

    def features(self, form: Form) -> npt.NDArray[np.float32]:
        batches = torch.split(self._sample, self._batch)
        return np.concatenate([form.embed(batch, self._threads).numpy() for batch in batches])

    def measure(self, forms: Mapping[str, Form]) -> dict[str, tuple[float, float]]:
        """Milliseconds alone and batched, the best of rounds in which all forms take turns."""
        batch = self._sample[: self._batch]
        best = {name: (float("inf"), float("inf")) for name in forms}
        for _ in range(_ROUNDS):
            for name, form in forms.items():
                alone = _milliseconds(form, batch[:1], self._threads)
                batched = _milliseconds(form, batch, 1) / len(batch)
                best[name] = (min(alone, best[name][0]), min(batched, best[name][1]))
        return best

    def _unfit(self, name: str) -> str | None:
        if self._backbone.device.type != "cpu" and name not in ON_GPU:
            return "runs on a CPU only"
        if name in LOSSY and self.real < LEAST_SAMPLE:
            return f"needs {LEAST_SAMPLE} pictures to judge it by, there are {self.real}"
        return None


def _filled_up(sample: Tensor, size: int) -> Tensor:
    """With noise up to the least number of pictures."""
    missing = max(0, LEAST_SAMPLE - len(sample))
    noise = torch.randint(
        0, 256, (missing, size, size, 3), generator=torch.Generator().manual_seed(0)
    )
    return torch.cat([sample.to(torch.uint8), noise.to(torch.uint8)])


def _milliseconds(form: Form, pixels: Tensor, threads: int) -> float:
    started = time.perf_counter()
    form.embed(pixels, threads)
    return (time.perf_counter() - started) * 1e3
