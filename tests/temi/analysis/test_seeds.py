import json
from collections.abc import Mapping

import numpy as np
import pytest

from temi.analysis.seeds import run_seeds
from temi.errors import TemiError


def draw(seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {"accuracy": rng.random(), "nmi": rng.random()}


def test_mean_and_standard_deviation_of_every_metric() -> None:
    summary = run_seeds(draw, range(4))

    assert summary.seeds == (0, 1, 2, 3)
    assert set(summary.metrics) == {"accuracy", "nmi"}
    for name, metric in summary.metrics.items():
        values = [draw(seed)[name] for seed in range(4)]
        assert metric.values == tuple(values)
        assert metric.mean == pytest.approx(np.mean(values))
        assert metric.std == pytest.approx(np.std(values, ddof=1))


def test_one_seed_has_no_standard_deviation() -> None:
    metric = run_seeds(draw, [7]).metrics["nmi"]

    assert metric.std is None
    assert metric.mean == draw(7)["nmi"]


def test_equal_runs_have_a_standard_deviation_of_zero() -> None:
    assert run_seeds(lambda _seed: {"loss": 0.1}, [1, 2, 3]).metrics["loss"].std == 0.0


def test_as_dict_is_plain() -> None:
    values = run_seeds(lambda seed: {"loss": np.float64(seed)}, [1, 3]).as_dict()

    assert json.loads(json.dumps(values)) == {
        "seeds": [1, 3],
        "metrics": {"loss": {"mean": 2.0, "std": pytest.approx(2**0.5), "values": [1.0, 3.0]}},
    }


def test_invalid_seeds_and_metrics_are_refused() -> None:
    def uneven(seed: int) -> Mapping[str, float]:
        return {"a": 1.0} if seed < 2 else {"b": 1.0}

    with pytest.raises(TemiError, match="at least one seed"):
        run_seeds(draw, [])
    with pytest.raises(TemiError, match="must be different"):
        run_seeds(draw, [1, 1])
    with pytest.raises(TemiError, match="seed 2 returned the metrics"):
        run_seeds(uneven, [1, 2])
