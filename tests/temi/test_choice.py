"""Another form of a backbone is taken only if it is faster and says the same."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from temi.backbones import Backbone, Preprocessing
from temi.backbones import choice as choosing
from temi.backbones.choice import LEAST_SAMPLE, Choice, Trial, choose_form
from temi.backbones.forms import MAKERS, ON_GPU, CompiledForm, OnnxForm, TorchForm

_SIZE = 16


def _backbone() -> Backbone:
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16, 24),
    )
    return Backbone(
        name="small",
        module=module,
        preprocessing=Preprocessing(
            size=_SIZE, resize=_SIZE, interpolation="bicubic", mean=(120.0,) * 3, std=(60.0,) * 3
        ),
        weights_hash="0" * 64,
        device=torch.device("cpu"),
    )


def _pictures(n: int) -> Tensor:
    """Of four colors, with noise."""
    generator = torch.Generator().manual_seed(1)
    colors = torch.tensor([[200, 30, 30], [30, 200, 30], [30, 30, 200], [200, 200, 30]])
    noise = torch.randint(-30, 30, (n, _SIZE, _SIZE, 3), generator=generator)
    return (colors[torch.arange(n) % 4][:, None, None] + noise).to(torch.uint8)


def _nearest(backbone: Backbone) -> choosing.Label:
    centers = backbone.embed(_pictures(4)).numpy()

    def label(features: np.ndarray) -> np.ndarray:
        return np.asarray(((features[:, None] - centers) ** 2).sum(-1).argmin(1), dtype=np.int64)

    return label


def _choose(names: tuple[str, ...], pictures: int = LEAST_SAMPLE) -> Choice:
    backbone = _backbone()
    return choose_form(backbone, names, _pictures(pictures), _nearest(backbone), threads=2)


def _trial(choice: Choice, name: str) -> Trial:
    return next(trial for trial in choice.trials if trial.form == name)


@pytest.mark.parametrize("name", ["torch", "onnx"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("count", [1, 5])
def test_a_form_gives_the_features_of_the_backbone(name: str, threads: int, count: int) -> None:
    backbone, pixels = _backbone(), _pictures(count)
    before = torch.get_num_threads()
    try:
        found = MAKERS[name](backbone, pixels).embed(pixels, threads)
    finally:
        torch.set_num_threads(before)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, backbone.embed(pixels), rtol=1e-4, atol=1e-5)


def test_what_torch_compiles_gives_the_features_of_the_backbone() -> None:
    backbone = _backbone()
    form = CompiledForm(backbone)
    for count in (1, 3):
        pixels = _pictures(count)
        torch.testing.assert_close(
            form.embed(pixels, 2), backbone.embed(pixels), rtol=1e-3, atol=1e-4
        )


def test_the_choice_says_what_was_measured() -> None:
    choice = _choose(("torch", "onnx"))
    assert choice.sample == LEAST_SAMPLE
    assert [trial.form for trial in choice.trials] == ["torch", "onnx"]
    for trial in choice.trials:
        assert trial.agreement == 1.0
        assert trial.refused is None
        assert trial.alone_ms is not None
        assert trial.alone_ms > 0
        assert trial.batched_ms is not None
        assert trial.batched_ms > 0
    assert choice.form.name in ("torch", "onnx")


def test_eight_bits_are_compared_on_real_pictures() -> None:
    trial = _trial(_choose(("int8",)), "int8")
    assert trial.agreement is not None
    assert trial.agreement > 0.9
    assert _trial(_choose(("int8",), pictures=0), "int8").refused


class _Wrong(TorchForm):
    name = "wrong"

    def _run(self, pixels: Tensor) -> Tensor:
        return -super()._run(pixels)


class _Slow(TorchForm):
    name = "slow"

    def _run(self, pixels: Tensor) -> Tensor:
        for _ in range(20):
            super()._run(pixels)
        return super()._run(pixels)


class _Quick(TorchForm):
    """Remembers what it was asked: what a much faster form would look like."""

    name = "quick"

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        self._known: dict[bytes, Tensor] = {}

    def _run(self, pixels: Tensor) -> Tensor:
        key = pixels.numpy().tobytes()
        if key not in self._known:
            self._known[key] = super()._run(pixels)
        return self._known[key]


def _broken(_backbone: Backbone, _sample: Tensor) -> TorchForm:
    raise RuntimeError("no compiler here\nand a long story")


@pytest.fixture
def _further_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    makers = {
        **MAKERS,
        "wrong": lambda backbone, _: _Wrong(backbone),
        "slow": lambda backbone, _: _Slow(backbone),
        "quick": lambda backbone, _: _Quick(backbone),
        "broken": _broken,
    }
    monkeypatch.setattr(choosing, "MAKERS", makers)


@pytest.mark.usefixtures("_further_forms")
def test_other_labels_are_refused_however_fast() -> None:
    choice = _choose(("wrong",))
    trial = _trial(choice, "wrong")
    assert choice.form.name == "torch"
    assert trial.refused is not None
    assert "agree" in trial.refused
    assert trial.agreement is not None
    assert trial.agreement < 0.99


@pytest.mark.usefixtures("_further_forms")
def test_the_fastest_is_taken_and_a_slower_one_is_not() -> None:
    assert _choose(("slow",)).form.name == "torch"
    assert _choose(("slow", "quick")).form.name == "quick"


@pytest.mark.usefixtures("_further_forms")
def test_a_form_that_cannot_be_made_is_left_out() -> None:
    choice = _choose(("broken",))
    assert choice.form.name == "torch"
    assert _trial(choice, "broken").refused == "RuntimeError: no compiler here"


def test_an_onnx_form_is_not_offered_to_a_gpu() -> None:
    backbone = _backbone()
    judge = choosing._Judge(backbone, _pictures(64), _nearest(backbone), 1)
    backbone.device = torch.device("cuda")
    form, trial = judge.try_form("onnx")
    assert form is None
    assert trial.refused == "runs on a CPU only"
    assert OnnxForm.name not in ON_GPU
