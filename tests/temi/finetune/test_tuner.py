"""Fine-tuning of a small backbone that sees whole images whose group depends on the middle."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import timm
import torch
from PIL import Image, ImageDraw
from safetensors.torch import load, load_file, save, save_file
from torch import Tensor, nn

from temi.analysis.metrics import evaluate
from temi.backbones.base import Backbone, hash_tensors
from temi.backbones.embedding import Picture, embed_images
from temi.backbones.load import load_backbone
from temi.backbones.preprocessing import Preprocessing
from temi.config import TrainConfig
from temi.errors import TemiError
from temi.finetune import FinetuneConfig, Finetuner, backbone_tensors, with_weights
from temi.finetune.tuner import read_pixels
from temi.model import ClusterModel
from temi.training.trainer import Trainer

N_IMAGES, N_GROUPS, N_HEADS = 90, 3, 3
TRAINED = TrainConfig(
    n_clusters=N_GROUPS,
    n_heads=N_HEADS,
    n_neighbors=10,
    hidden_dim=32,
    bottleneck_dim=16,
    batch_size=64,
    steps=300,
    early_stop=False,
)


class Glance(nn.Module):
    """The mean color of the image; the last layer can learn a weight for every part of it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 4, stride=4)
        self.norm = nn.BatchNorm2d(3)
        self.last = nn.Linear(3 * 8 * 8, 3)
        colors = torch.eye(3)
        with torch.no_grad():
            self.conv.weight.copy_(colors[:, :, None, None].expand(3, 3, 4, 4) / 16)
            self.last.weight.copy_(colors.repeat_interleave(64, dim=1) / 64)
            for bias in (self.conv.bias, self.last.bias):
                assert bias is not None
                bias.zero_()

    def forward(self, batch: Tensor) -> Tensor:
        found = self.last(self.norm(self.conv(batch)).relu().flatten(1))
        assert isinstance(found, Tensor)
        return found


@dataclass(frozen=True)
class Case:
    backbone: Backbone
    models: list[ClusterModel]
    best: ClusterModel
    pictures: list[Image.Image]
    neighbors: npt.NDArray[np.int64]
    labels: list[int]

    def load(self, ids: Sequence[int]) -> Iterable[Image.Image]:
        return [self.pictures[i] for i in ids]

    def run(self, **settings: Any) -> Finetuner:
        # Faster than the defaults: this backbone has one layer to learn, not fifty.
        given = {"batch_size": 16, "backbone_learning_rate": 3e-4, "head_learning_rate": 3e-4}
        config = FinetuneConfig.of(TRAINED, **({"steps": 120} | given | settings))
        return Finetuner(
            self.backbone, self.models, self.load, self.neighbors, config, device="cpu"
        )

    def features(self, backbone: Backbone) -> npt.NDArray[np.float32]:
        return np.concatenate(list(embed_images(backbone, self.pictures)))

    def accuracy(self, backbone: Backbone, model: ClusterModel) -> float:
        accuracy = evaluate(self.labels, model.predict(self.features(backbone))).accuracy
        assert accuracy is not None
        return accuracy


def rgb(values: npt.NDArray[np.floating]) -> tuple[int, ...]:
    return tuple(int(value) for value in values.clip(0, 255))


def draw(background_spread: float, rng: np.random.Generator) -> list[Image.Image]:
    """Red, green and blue discs on backgrounds whose color is independent of the group."""
    pictures = []
    for i in range(N_IMAGES):
        color = 90 + rng.normal(0, 8, 3)
        color[i % N_GROUPS] += 100
        picture = Image.new("RGB", (32, 32), rgb(rng.normal(128, background_spread, 3)))
        ImageDraw.Draw(picture).ellipse([8, 8, 24, 24], fill=rgb(color))
        pictures.append(picture)
    return pictures


def draw_neighbors(labels: npt.NDArray[np.int64], rng: np.random.Generator) -> Any:
    """Ten neighbors of each image; one in twenty is a random image."""
    rows = []
    for i, label in enumerate(labels):
        others = np.delete(np.arange(N_IMAGES), i)
        own = rng.choice(others[labels[others] == label], 10)
        rows.append(np.where(rng.random(10) < 0.95, own, rng.choice(others, 10)))
    return np.stack(rows)


def make_case(background_spread: float) -> Case:
    torch.set_num_threads(1)
    rng = np.random.default_rng(5)
    module = Glance()
    backbone = Backbone(
        name="glance",
        module=module,
        preprocessing=Preprocessing(
            size=32, resize=32, interpolation="bilinear", mean=(0, 0, 0), std=(64, 64, 64)
        ),
        weights_hash=hash_tensors(module.state_dict()),
        device=torch.device("cpu"),
    )
    pictures = draw(background_spread, rng)
    labels = np.arange(N_IMAGES) % N_GROUPS
    neighbors = draw_neighbors(labels, rng)
    features = np.concatenate(list(embed_images(backbone, pictures)))
    trainer = Trainer(features, neighbors, TRAINED, device="cpu")
    trainer.run(trainer.total_steps)
    models = [trainer.model(head) for head in range(N_HEADS)]
    return Case(backbone, models, trainer.finish(), pictures, neighbors, labels.tolist())


@pytest.fixture(scope="module")
def easy() -> Case:
    return make_case(background_spread=2)


@pytest.fixture(scope="module")
def hard() -> Case:
    return make_case(background_spread=14)


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def test_improves_where_features_are_poor_and_pairs_are_good(hard: Case) -> None:
    before = hard.accuracy(hard.backbone, hard.best)
    run = hard.run()
    first = run.run(10).loss

    report = run.run(1000)

    assert (report.step, report.done) == (120, True)
    assert report.loss < first - 0.05
    assert before < 0.9
    assert hard.accuracy(*run.finish()) > before + 0.02


def test_good_features_do_not_get_worse(easy: Case) -> None:
    before = easy.accuracy(easy.backbone, easy.best)
    run = easy.run(steps=40)
    run.run(40)

    assert before > 0.95
    assert easy.accuracy(*run.finish()) >= before


def test_the_first_predictions_equal_those_of_the_trained_models(easy: Case) -> None:
    backbone, model = easy.run().finish()

    features = easy.features(backbone)

    np.testing.assert_array_equal(features, easy.features(easy.backbone))
    expected = easy.models[0].predict_proba(features)
    np.testing.assert_allclose(model.predict_proba(features), expected, atol=1e-5)


def test_only_the_copy_changes(easy: Case) -> None:
    weights = backbone_tensors(easy.backbone)
    features = easy.features(easy.backbone)
    run = easy.run()
    run.run(3)

    tuned, _ = run.finish()

    assert same(backbone_tensors(easy.backbone), weights)
    assert not any(p.requires_grad for p in easy.backbone.module.parameters())
    np.testing.assert_array_equal(easy.features(easy.backbone), features)
    assert not np.array_equal(easy.features(tuned), features)
    assert tuned.name == "glance+finetuned"
    assert tuned.weights_hash != easy.backbone.weights_hash
    assert tuned.weights_hash == hash_tensors(backbone_tensors(tuned))


def test_every_parameter_is_trained_and_no_statistic_changes(easy: Case) -> None:
    run = easy.run()
    before = {name: t.clone() for name, t in run._student.state_dict().items()}
    run.run(2)

    parameters = {name for name, _ in run._student.named_parameters()}
    for name, tensor in run._student.state_dict().items():
        assert torch.equal(tensor, before[name]) == (name not in parameters), name
    assert {"extractor.norm.running_mean", "mean", "std"} <= before.keys() - parameters


def test_the_teacher_is_a_moving_average_of_all_parameters(easy: Case) -> None:
    run = easy.run(teacher_momentum=0.75)
    expected = {name: p.clone() for name, p in run._teacher.named_parameters()}
    for _ in range(3):
        run.run(1)
        for name, student in run._student.named_parameters():
            expected[name] = 0.75 * expected[name] + 0.25 * student.detach()

    for name, teacher in run._teacher.named_parameters():
        torch.testing.assert_close(teacher, expected[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("objective", ["temi", "wpmi", "pmi"])
def test_micro_batches_give_the_gradients_of_the_whole_batch(easy: Case, objective: str) -> None:
    whole = easy.run(objective=objective, pairs_at_once=16)
    pieces = easy.run(objective=objective, pairs_at_once=5)
    for run in (whole, pieces):
        run.run(1)

    first, second = whole._optimizer.state(), pieces._optimizer.state()

    for name, tensor in first.items():
        torch.testing.assert_close(tensor, second[name], rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(whole._losses, pieces._losses)


def test_scan_does_not_split_its_batch(easy: Case) -> None:
    run = easy.run(objective="scan", pairs_at_once=5)

    assert [len(pairs) for pairs, _ in run._micro_batches()] == [16]
    assert np.isfinite(run.run(1).loss)


@pytest.mark.parametrize("stop_at", [1, 7])
def test_a_resumed_run_is_bit_identical(easy: Case, stop_at: int) -> None:
    undisturbed = easy.run(steps=12)
    undisturbed.run(12)

    interrupted = easy.run(steps=12)
    interrupted.run(stop_at)
    stored = save(interrupted.state())
    resumed = easy.run(steps=12)
    resumed.load_state(load(stored))
    assert resumed.step == stop_at
    report = resumed.run(12)

    assert same(resumed.state(), undisturbed.state())
    assert report == undisturbed.report()
    assert resumed.finish()[0].weights_hash == undisturbed.finish()[0].weights_hash


def test_another_seed_is_another_run(easy: Case) -> None:
    first, second, other = (easy.run(seed=seed) for seed in (1, 1, 2))
    for run in (first, second, other):
        run.run(2)

    assert same(first.state(), second.state())
    assert not same(first.state(), other.state())


def test_a_returned_state_does_not_change_later(easy: Case) -> None:
    run = easy.run()
    run.run(1)
    state = run.state()
    kept = {name: tensor.clone() for name, tensor in state.items()}
    run.run(1)

    assert same(state, kept)


def test_stored_weights_give_the_same_features(easy: Case, tmp_path: Path) -> None:
    run = easy.run()
    run.run(2)
    tuned, _ = run.finish()
    save_file(backbone_tensors(tuned), tmp_path / "tuned.safetensors")

    again = with_weights(easy.backbone, load_file(tmp_path / "tuned.safetensors"))

    assert (again.name, again.weights_hash) == (tuned.name, tuned.weights_hash)
    np.testing.assert_array_equal(easy.features(again), easy.features(tuned))
    assert with_weights(tuned, backbone_tensors(easy.backbone)).name == tuned.name
    with pytest.raises(TemiError, match="does not fit"):
        with_weights(easy.backbone, {"other": torch.zeros(1)})


def test_a_timm_backbone_loads_stored_weights_by_name(tmp_path: Path) -> None:
    state = timm.create_model("test_efficientnet", pretrained=False, num_classes=0).state_dict()
    save_file(state, tmp_path / "start.safetensors")
    start = load_backbone(f"timm:test_efficientnet@{tmp_path / 'start.safetensors'}", device="cpu")
    save_file(backbone_tensors(start), tmp_path / "again.safetensors")

    again = load_backbone(f"timm:test_efficientnet@{tmp_path / 'again.safetensors'}", device="cpu")

    assert again.weights_hash == start.weights_hash


def test_warm_up_is_linear_and_then_constant(easy: Case) -> None:
    run = easy.run(steps=40, warmup_steps=50)
    factors = []
    for _ in range(6):
        factors.append(run._warmup_factor())
        run.run(1)

    assert factors == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1])  # a tenth of the run


@pytest.mark.parametrize("threads", [1, 3])
def test_images_are_loaded_once_and_in_order(easy: Case, threads: int) -> None:
    asked: list[list[int]] = []

    def load_images(ids: Sequence[int]) -> Iterable[Picture]:
        asked.append(list(ids))
        return (partial(easy.pictures.__getitem__, i) for i in ids)

    torch.set_num_threads(threads)
    config = FinetuneConfig.of(TRAINED, batch_size=60, steps=1)
    run = Finetuner(easy.backbone, easy.models, load_images, easy.neighbors, config, device="cpu")
    run.run(1)

    assert len(asked) == 1
    assert sorted(set(asked[0])) == asked[0]
    assert torch.get_num_threads() == threads
    pixels = read_pixels(easy.backbone.preprocessing, load_images(asked[0]), len(asked[0]))
    for row, i in zip(pixels, asked[0], strict=True):
        np.testing.assert_array_equal(row.numpy(), np.asarray(easy.pictures[i]))


def test_missing_images_are_an_error(easy: Case) -> None:
    def damaged() -> Image.Image:
        raise OSError("damaged file")

    preprocessing = easy.backbone.preprocessing
    with pytest.raises(TemiError, match="returned 2 images for 3 ids"):
        read_pixels(preprocessing, easy.pictures[:2], 3)
    with pytest.raises(TemiError, match="returned more than 3 images for 3 ids"):
        read_pixels(preprocessing, easy.pictures, 3)
    with pytest.raises(OSError, match="damaged file"):
        read_pixels(preprocessing, [damaged, *easy.pictures], 91)


def changed(model: ClusterModel, temperature: float = 0.1, **arrays: Any) -> ClusterModel:
    return ClusterModel.from_tensors(model.tensors() | arrays, temperature)


def test_models_of_different_runs_are_refused(easy: Case) -> None:
    first, wide = easy.models[0], np.zeros((16, 4), np.float32)
    four = np.zeros(4, np.float32)
    invalid = {
        "at least one": [],
        "expect 4 features": [changed(first, mean=four, std=four, w1=np.zeros((4, 32)))],
        "shape of w3": [first, changed(first, w3=wide)],
        "differ in mean": [first, changed(first, mean=first.tensors()["mean"] + 1)],
        "temperature": [first, changed(first, temperature=0.2)],
    }

    for reason, models in invalid.items():
        with pytest.raises(TemiError, match=reason):
            Finetuner(easy.backbone, models, easy.load, easy.neighbors, FinetuneConfig())


def test_invalid_states_and_neighbors_are_refused(easy: Case) -> None:
    run = easy.run()
    with pytest.raises(TemiError, match="another fine-tuner: it differs in optimizer"):
        run.load_state({k: v for k, v in run.state().items() if not k.startswith("optimizer")})
    with pytest.raises(TemiError, match="another fine-tuner: it differs in losses"):
        run.load_state(run.state() | {"losses": torch.zeros(3, 1)})
    with pytest.raises(TemiError, match="neighbors must have shape"):
        Finetuner(easy.backbone, easy.models, easy.load, np.zeros(3, int), FinetuneConfig())
    with pytest.raises(TemiError, match="must be row ids"):
        Finetuner(easy.backbone, easy.models, easy.load, easy.neighbors + 60, FinetuneConfig())
