import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from safetensors.torch import load, save
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from temi.analysis.metrics import evaluate
from temi.device import torch_threads
from temi.errors import InvalidConfig, TemiError
from temi.model import ClusterModel
from temi.neighbors.search import mine_neighbors
from temi.training.trainer import TrainConfig, Trainer

Mixture = Callable[..., tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]
Features = npt.NDArray[np.float32]


def small(n_clusters: int = 4, **changes: object) -> TrainConfig:
    settings = {
        "n_heads": 3,
        "hidden_dim": 32,
        "bottleneck_dim": 16,
        "batch_size": 32,
        "steps": 60,
        "projection_dim": 8,
        "early_stop": False,
    }
    return TrainConfig.from_dict({"n_clusters": n_clusters} | settings | changes)


def trainer(features: Features, config: TrainConfig) -> Trainer:
    return Trainer(features, mine_neighbors(features, 10).ids, config, device="cpu")


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def test_learns_a_mixture(mixture: Mixture) -> None:
    features, labels = mixture(400, n_groups=4, dim=24)
    run = trainer(features, small(steps=400, batch_size=128, early_stop=True, n_heads=4))

    report = run.run(10_000)
    found = run.finish().predict(features)

    accuracy = evaluate(list(labels), found).accuracy
    assert accuracy is not None
    assert accuracy > 0.95
    assert report.done
    assert report.settled


def test_new_images_are_assigned_to_their_group(mixture: Mixture) -> None:
    features, labels = mixture(500, n_groups=4)
    run = trainer(features[:400], small(steps=300, batch_size=128))
    run.run(300)

    found = run.finish().predict(features[400:])

    accuracy = evaluate(list(labels[400:]), found).accuracy
    assert accuracy is not None
    assert accuracy > 0.95


def test_same_seed_same_run(mixture: Mixture) -> None:
    features, _ = mixture(90, n_groups=4)
    first, second, other = (trainer(features, small(seed=seed)) for seed in (5, 5, 6))
    for run in (first, second, other):
        run.run(20)

    assert same(first.state(), second.state())
    assert not same(first.state(), other.state())


@pytest.mark.parametrize("stop_at", [1, 7, 50, 59])
def test_a_resumed_run_is_bit_identical(mixture: Mixture, stop_at: int) -> None:
    features, _ = mixture(90, n_groups=4)
    uninterrupted = trainer(features, small())
    uninterrupted.run(60)

    interrupted = trainer(features, small())
    interrupted.run(stop_at)
    stored = save(interrupted.state())
    resumed = trainer(features, small())
    resumed.load_state(load(stored))
    assert resumed.step == stop_at
    report = resumed.run(60)

    assert same(resumed.state(), uninterrupted.state())
    assert report == uninterrupted.report()
    for name, array in uninterrupted.finish().tensors().items():
        np.testing.assert_array_equal(resumed.finish().tensors()[name], array)


def test_the_number_of_steps_per_call_changes_nothing(mixture: Mixture) -> None:
    features, _ = mixture(90, n_groups=4)
    one_call, several_calls = trainer(features, small()), trainer(features, small())
    one_call.run(30)
    for n_steps in (1, 4, 10, 15):
        several_calls.run(n_steps)

    assert same(one_call.state(), several_calls.state())


def test_a_returned_state_does_not_change_later(mixture: Mixture) -> None:
    features, _ = mixture(60, n_groups=4)
    run = trainer(features, small())
    run.run(3)
    state = run.state()
    kept = {name: tensor.clone() for name, tensor in state.items()}

    run.run(5)

    assert same(state, kept)


def test_a_state_of_another_trainer_is_refused(mixture: Mixture) -> None:
    features, _ = mixture(60, n_groups=4)
    state = trainer(features, small()).state()

    with pytest.raises(TemiError, match="another trainer"):
        trainer(features, small(n_heads=2)).load_state(state)
    with pytest.raises(TemiError, match="another trainer"):
        trainer(features, small(projection_dim=None)).load_state(state)


def test_folding_the_projection_into_the_head_changes_no_prediction(mixture: Mixture) -> None:
    features, _ = mixture(80, n_groups=4, dim=20)
    run = trainer(features, small(projection_dim=6, smoothing=False, select="lowest_loss"))
    run.run(30)
    with torch.no_grad():
        rows = run._inputs.rows(torch.arange(80))
        logits = torch.cat([group.teacher(rows) for group in run._head_groups])[
            run.report().best_head
        ]

    model = run.finish()

    assert model.dim == 20
    expected = (logits / 0.1).softmax(dim=-1).numpy()
    np.testing.assert_allclose(model.predict_proba(features), expected, atol=1e-4)


def test_the_head_with_the_lowest_loss_is_selected(mixture: Mixture) -> None:
    features, _ = mixture(80, n_groups=4)
    run = trainer(features, small())
    run.run(60)
    losses = run.state()["losses"].mean(dim=0)

    assert run.report().best_head == int(losses.argmin())
    assert run.report().loss == pytest.approx(float(losses.min()))


def test_warm_up_is_linear_and_then_constant(mixture: Mixture) -> None:
    features, _ = mixture(60, n_groups=4)
    run = trainer(features, small(steps=100, warmup_steps=50, learning_rate=8e-3))
    rates = []
    for _ in range(20):
        rates.append(run._learning_rate())
        run.run(1)

    peak = 8e-3 * 32 / 256
    expected = [peak * min(1.0, (step + 1) / 10) for step in range(20)]  # a tenth of the run
    assert rates == pytest.approx(expected)


def test_the_learning_rate_falls_to_zero_in_the_cooldown(mixture: Mixture) -> None:
    features, _ = mixture(60, n_groups=4)
    run = trainer(features, small(steps=40, warmup_steps=0, cooldown=0.5, learning_rate=8e-3))
    rates = []
    while not run.done:
        rates.append(run._learning_rate())
        run.run(1)

    assert rates[:20] == pytest.approx([1e-3] * 20)
    assert rates[30] == pytest.approx(0.5e-3)
    assert all(later < earlier for earlier, later in itertools.pairwise(rates[20:]))
    assert rates[-1] < 1e-5


def test_the_papers_learning_rate_stays_constant(mixture: Mixture) -> None:
    features, _ = mixture(60, n_groups=4)
    run = trainer(features, small(steps=40, warmup_steps=0, cooldown=0.0, learning_rate=8e-3))
    run.run(39)

    assert run._learning_rate() == pytest.approx(1e-3)


def test_training_stops_at_the_last_step(mixture: Mixture) -> None:
    features, _ = mixture(60, n_groups=4)
    run = trainer(features, small(steps=5))

    report = run.run(100)

    assert (report.step, report.done, report.settled) == (5, True, False)
    assert run.run(1).step == 5


CASES: dict[str, Callable[[np.random.Generator], npt.NDArray[np.floating]]] = {
    "fewer images than a batch": lambda rng: rng.normal(size=(9, 12)),
    "as many images as clusters": lambda rng: rng.normal(size=(4, 12)),
    "constant features": lambda rng: np.ones((40, 12)),
    "exact duplicates": lambda rng: np.repeat(rng.normal(size=(5, 12)), 20, axis=0),
    "constant dimensions": lambda rng: rng.normal(size=(40, 12)) * ([0.0] * 6 + [1.0] * 6),
    "huge and tiny scales": lambda rng: rng.normal(size=(40, 12)) * ([1e6] * 6 + [1e-6] * 6),
}


@pytest.mark.parametrize("case", CASES)
def test_no_nan(case: str) -> None:
    features = CASES[case](np.random.default_rng(0)).astype(np.float32)
    run = trainer(features, small())

    report = run.run(60)
    probs = run.finish().predict_proba(features)

    assert np.isfinite(report.loss)
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-5)
    assert all(torch.isfinite(t).all() for t in run.state().values() if t.is_floating_point())


def test_more_clusters_than_groups_leaves_some_empty(mixture: Mixture) -> None:
    features, _ = mixture(60, n_groups=2)
    run = trainer(features, small(n_clusters=40, beta=1.0))

    run.run(60)

    assert run.finish().n_clusters == 40
    assert np.isfinite(run.finish().predict_proba(features)).all()


def test_invalid_arrays_are_refused(mixture: Mixture) -> None:
    features, _ = mixture(20, n_groups=2)
    neighbors = mine_neighbors(features, 5).ids

    with pytest.raises(InvalidConfig) as caught:
        Trainer(features, neighbors, small(n_clusters=21))
    assert caught.value.field == "n_clusters"
    with pytest.raises(TemiError, match="neighbors must have shape"):
        Trainer(features, neighbors[:10], small())
    with pytest.raises(TemiError, match="must be row ids"):
        Trainer(features, neighbors + 15, small())
    with pytest.raises(TemiError, match="features must have shape"):
        Trainer(features[0], neighbors, small())
    with pytest.raises(TemiError, match="NaN"):
        Trainer(np.full_like(features, np.nan), neighbors, small())


def test_memory_mapped_features(mixture: Mixture, tmp_path: Path) -> None:
    features, _ = mixture(60, n_groups=4)
    np.save(tmp_path / "f.npy", features)
    plain = trainer(features, small())
    mapped = trainer(np.load(tmp_path / "f.npy", mmap_mode="r"), small())
    plain.run(5)
    mapped.run(5)

    assert same(plain.state(), mapped.state())


def test_a_stored_model_predicts_the_same(mixture: Mixture) -> None:
    features, _ = mixture(60, n_groups=4)
    run = trainer(features, small())
    run.run(5)
    model = run.finish()

    again = ClusterModel.from_tensors(model.tensors(), model.temperature)

    np.testing.assert_array_equal(again.predict_proba(features), model.predict_proba(features))


def test_the_number_of_threads_changes_no_bit(mixture: Mixture) -> None:
    features, _ = mixture(90, n_groups=4)
    config = small(n_heads=6, steps=4)
    one = trainer(features, config)
    one.run(4)
    torch.set_num_threads(2)
    two = trainer(features, config)
    two.run(4)

    assert len(one._head_groups) > 1
    assert (one._pool.n_threads, two._pool.n_threads) == (1, 2)
    assert same(one.state(), two.state())
    assert torch.get_num_threads() == 2


def test_the_model_does_not_depend_on_the_number_of_cores(mixture: Mixture) -> None:
    features, _ = mixture(300, n_groups=4, dim=60, spread=1.2)
    neighbors = mine_neighbors(features, 20).ids
    found = []
    for cores in (1, 2, 4):
        with torch_threads(cores), threadpool_limits(limits=cores):
            run = Trainer(features, neighbors, small(n_neighbors=20, steps=30), device="cpu")
            run.run(30)
            found.append(run.finish().tensors())

    for tensors in found[1:]:
        assert all(np.array_equal(tensors[name], found[0][name]) for name in tensors)


def test_the_consensus_of_the_heads_is_the_model(mixture: Mixture) -> None:
    features, labels = mixture(400, n_groups=6, dim=24, spread=1.5)
    neighbors = mine_neighbors(features, 20).ids
    run = Trainer(features, neighbors, small(n_clusters=6, n_heads=8, steps=100), device="cpu")
    report = run.run(100)
    heads = [run.head_probabilities(head, np.arange(400)).argmax(axis=1) for head in range(8)]

    model = run.finish()

    def accuracy(found: npt.NDArray[np.integer]) -> float:
        return evaluate(list(labels), found).accuracy or 0.0

    assert accuracy(model.predict(features)) >= np.mean([accuracy(head) for head in heads])
    assert run.agreement is not None
    assert 0.3 < run.agreement <= 1
    lowest = Trainer(
        features,
        neighbors,
        small(n_clusters=6, n_heads=8, steps=100, select="lowest_loss"),
        device="cpu",
    )
    lowest.run(100)
    equal = lowest.finish().predict(features) == heads[report.best_head]
    assert equal.mean() > 0.9  # distilled
    assert lowest.agreement is None
