"""Two versions of a model, as people read them."""

from collections.abc import Iterable

from app.cli.output import percent, print_table
from temi_client import Comparison

_NAMES = 20  # of clusters; --json has them all


def print_comparison(found: Comparison) -> None:
    """Nothing is printed of what does not differ."""
    left, right = f"version {found.left}", f"version {found.right}"
    _print_agreement(found)
    _print_pairs(
        "Settings that differ",
        ["setting", left, right],
        ((each.path, _short(each.left), _short(each.right)) for each in found.configuration),
    )
    _print_pairs(
        "Metrics, each on the images that the version was made from",
        ["metric", f">{left}", f">{right}", ">change"],
        (
            (each.path, _number(each.left), _number(each.right), _change(each.left, each.right))
            for each in found.metrics
        ),
    )
    names = found.cluster_names
    more = f" (the first {_NAMES} of {len(names)})" if len(names) > _NAMES else ""
    _print_pairs(
        f"Clusters that are called differently{more}",
        [">cluster", left, right],
        ((each.path, each.left or "-", each.right or "-") for each in names[:_NAMES]),
    )


def _print_agreement(found: Comparison) -> None:
    both = found.assignments
    title = (
        f"{found.name}: versions {found.left} and {found.right} on {both.images:,} images "
        f"of {both.dataset_id}"
    )
    rows = [
        ("images that stay in their group", percent(both.same_cluster)),
        ("adjusted Rand index", _number(both.adjusted_rand_index)),
        ("normalized mutual information", _number(both.normalized_mutual_information)),
    ]
    print_table(title, ["agreement", ">value"], rows)
    _print_pairs(
        "Largest movements",
        [f"from, in version {found.left}", f"to, in version {found.right}", ">images", ">share"],
        (
            (
                f"{move.left_cluster_id}: {move.left_label}",
                f"{move.right_cluster_id}: {move.right_label}",
                f"{move.images:,}",
                percent(move.images / both.images),
            )
            for move in both.movements
        ),
    )


def _print_pairs(title: str, columns: list[str], rows: Iterable[tuple[object, ...]]) -> None:
    if listed := list(rows):
        print_table(title, columns, listed)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _change(left: float | None, right: float | None) -> str:
    if left is None or right is None or left == right:
        return ""
    return f"{right - left:+.4g}"


def _short(value: object) -> str:
    """A hash is told from another by its start."""
    text = "-" if value is None else str(value)
    return f"{text[:12]}..." if len(text) == 64 and text.isalnum() else text
