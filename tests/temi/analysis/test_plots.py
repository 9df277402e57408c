import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from temi.analysis.choice import BetaCurve, BetaPoint
from temi.analysis.plots import (
    SweepFigures,
    TrainingCurves,
    plot_beta_curve,
    plot_cluster_sizes,
    plot_confusion,
    plot_probabilities,
    plot_probability_counts,
    plot_sweep,
    plot_training,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def curve(conditional: list[float], accuracy: float | None = None) -> BetaCurve:
    return BetaCurve(
        n_clusters=10,
        points=tuple(
            BetaPoint(
                beta=0.55 + 0.05 * index,
                occupancy_entropy=2.2,
                conditional_entropy=entropy,
                mean_probability=0.8,
                loss=-1.0,
                size_kl=0.1,
                accuracy=accuracy,
            )
            for index, entropy in enumerate(conditional)
        ),
    )


def legend(figure: "Figure") -> list[str]:
    found = figure.axes[0].get_legend()
    assert found is not None
    return [text.get_text() for text in found.get_texts()]


def png(figure: "Figure") -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def test_beta_curve_marks_the_choice() -> None:
    figure = plot_beta_curve(curve([2.0, 0.1, 0.1], accuracy=0.7))

    lines = figure.axes[0].get_lines()
    assert list(np.asarray(lines[1].get_ydata())) == [2.0, 0.1, 0.1]
    assert list(np.asarray(lines[3].get_xdata())) == pytest.approx([0.6, 0.6])
    assert "chosen: 0.6" in legend(figure)
    assert list(np.asarray(figure.axes[1].get_lines()[0].get_ydata())) == [0.7] * 3
    assert png(figure).startswith(b"\x89PNG")


def test_beta_curve_without_a_choice_or_labels() -> None:
    figure = plot_beta_curve(curve([2.0, 2.0]))

    assert len(figure.axes) == 1
    assert not any("chosen" in text for text in legend(figure))


def test_cluster_sizes_by_size() -> None:
    figure = plot_cluster_sizes((3, 0, 9, 4))

    (steps,) = figure.axes[0].patches
    assert list(steps.get_data().values) == [9, 4, 3, 0]  # type: ignore[attr-defined]
    assert list(np.asarray(figure.axes[0].get_lines()[0].get_ydata())) == [4, 4]
    assert png(figure).startswith(b"\x89PNG")


def ticks(figure: "Figure", axis: str) -> list[str]:
    png(figure)  # ticks are placed when it is drawn
    labels = getattr(figure.axes[0], f"get_{axis}ticklabels")()
    return [label.get_text() for label in labels]


@pytest.mark.parametrize("count", [1, 3, 30])
def test_few_clusters_have_their_names(count: int) -> None:
    names = [f"猫 $x$ {number}" for number in range(count)]
    figure = plot_cluster_sizes(range(1, count + 1), names)
    assert ticks(figure, "y") == names[::-1]
    assert all(text.isdecimal() for text in ticks(figure, "x"))
    assert figure.axes[0].get_xlim()[0] == 0


@pytest.mark.parametrize("sizes", [[], [0], [1, 1], list(range(300)), [2_000] * 50])
def test_many_clusters_have_whole_numbers(sizes: list[int]) -> None:
    figure = plot_cluster_sizes(sizes)
    for axis in ("x", "y"):
        assert all(text.replace(",", "").isdecimal() for text in ticks(figure, axis) if text)
    assert figure.axes[0].get_ylim()[0] == 0


def test_probabilities_are_counted() -> None:
    figure = plot_probabilities(np.array([0.05, 0.95, 0.96, 1.0]), bins=10)

    heights = [bar.get_height() for bar in figure.axes[0].patches]  # type: ignore[attr-defined]
    assert heights == [1, 0, 0, 0, 0, 0, 0, 0, 0, 3]
    assert "mean 0.74" in legend(figure)
    assert png(figure).startswith(b"\x89PNG")


def test_the_maximum_number_of_clusters() -> None:
    sizes = np.random.default_rng(0).integers(0, 500, 25_000)
    assert png(plot_cluster_sizes(sizes)).startswith(b"\x89PNG")


def test_empty_data() -> None:
    assert png(plot_cluster_sizes([])).startswith(b"\x89PNG")
    assert png(plot_cluster_sizes([0, 0])).startswith(b"\x89PNG")
    figure = plot_probability_counts([0, 0], mean=None, median=None)
    assert png(figure).startswith(b"\x89PNG")


def test_a_good_clustering_shows_as_a_diagonal() -> None:
    counts = np.array([[0, 1, 9], [0, 0, 0], [8, 0, 0], [0, 7, 2]])
    figure = plot_confusion(counts, ["c", "empty", "a", "b"], ["A", "B", "C"])

    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "c", "empty"]
    assert [text.get_text() for text in axes.texts] == ["8", "7", "2", "1", "9"]
    shares = np.asarray(axes.get_images()[0].get_array())
    np.testing.assert_allclose(shares[1], [0, 7 / 9, 2 / 9])
    assert png(figure).startswith(b"\x89PNG")


def test_any_name_can_be_drawn() -> None:
    names = ["ねこ $\\frac{", "$x$ & <b>", "\n\x00\ufffe", "é" * 99]
    figure = plot_confusion(np.eye(4, dtype=np.int64), names, names)
    assert figure.axes[0].get_yticklabels()[0].get_text() == "ねこ $\\frac{"
    assert png(figure).startswith(b"\x89PNG")


def test_a_large_table_has_no_numbers() -> None:
    names = [str(number) for number in range(50)]
    figure = plot_confusion(np.eye(50, dtype=np.int64), names, names)
    assert not figure.axes[0].texts
    assert png(figure).startswith(b"\x89PNG")


def test_training_curves() -> None:
    curves = TrainingCurves(
        steps=np.array([1, 10, 20]),
        losses=np.array([[3.0, 2.0], [2.0, 1.0], [0.5, np.nan]]),
        use_steps=np.array([1, 20]),
        occupancy_entropy=np.array([0.1, 1.0]),
        conditional_entropy=np.array([1.0, 0.2]),
        max_entropy=1.1,
    )
    figure = plot_training(curves)
    assert legend(figure) == ["best head: 0"]
    assert len(figure.axes[1].get_lines()) == 3
    assert png(figure).startswith(b"\x89PNG")


def sweep(**changes: Any) -> SweepFigures:
    figures: dict[str, Any] = {
        "parameter": "n_clusters",
        "values": [4, 8, 16],
        "doubt": [0.01, 0.05, 0.4],
        "confidence": [0.99, 0.95, 0.6],
        "stability": [0.9, 0.8, 0.7],
        "evenness": [1.0, 0.9, 0.8],
        "accuracy": [np.nan] * 3,
        "suggested": 8,
    }
    return SweepFigures(**(figures | changes))


def labels_of(figure: "Figure") -> list[str]:
    (found,) = figure.legends
    return [text.get_text() for text in found.get_texts()]


def test_a_sweep_marks_the_suggestion() -> None:
    figure = plot_sweep(sweep())

    axes = figure.axes[0]
    doubt = axes.get_lines()[0]
    assert list(np.asarray(doubt.get_xdata())) == [4, 8, 16]
    assert list(np.asarray(doubt.get_ydata())) == [0.01, 0.05, 0.4]
    assert labels_of(figure) == [
        "doubt",
        "confidence",
        "stability",
        "evenness of the sizes",
        "suggested: 8",
    ]
    assert list(np.asarray(axes.get_lines()[-1].get_xdata())) == [8, 8]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["4", "8", "16"]
    assert png(figure).startswith(b"\x89PNG")


def test_a_sweep_of_betas_with_labels_and_no_suggestion() -> None:
    changes: dict[str, Any] = {"values": [0.6, 0.7, 0.8], "stability": [np.nan] * 3}
    changes |= {"accuracy": [0.7, 0.8, np.nan], "suggested": None}
    figure = plot_sweep(sweep(parameter="beta", **changes))

    assert labels_of(figure) == ["doubt", "confidence", "evenness of the sizes", "accuracy"]
    assert figure.axes[0].get_xlabel() == "beta"
    assert png(figure).startswith(b"\x89PNG")


def test_a_sweep_of_one_value() -> None:
    one = {name: [0.5] for name in ("doubt", "confidence", "stability", "evenness", "accuracy")}
    assert png(plot_sweep(sweep(values=[5], **one, suggested=5))).startswith(b"\x89PNG")
