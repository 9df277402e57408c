"""Terms of file names."""

import pytest

from temi.naming.terms import term_strengths, terms_of


@pytest.mark.parametrize(
    ("path", "terms"),
    [
        ("IMG_1234.JPG", set()),
        ("photos/2024-05-01/DSC00012.jpeg", set()),
        ("holiday/redCars/12.png", {"holiday", "red", "cars", "red cars"}),
        ("Äpfel_und_Birnen.webp", {"äpfel", "und", "birnen", "äpfel und birnen"}),
        ("a/b/x9.jpg", set()),
        ("the quick brown fox jumps.jpg", {"quick", "brown", "fox", "jumps"}),
        ("x" * 1000, set()),
    ],
)
def test_words_and_short_phrases(path: str, terms: set[str]) -> None:
    assert terms_of(path) == terms


def test_metadata_counts_too() -> None:
    assert terms_of("1.jpg", ["Golden Gate", "17"]) == {"golden", "gate", "golden gate"}


def test_shares_of_each_group() -> None:
    groups: list[list[set[str]]] = [
        [{"rose"}, {"rose", "garden"}],
        [{"tulip", "garden"}] * 8,
        [set()],
    ]
    words, strength = term_strengths(groups)
    assert words == ["garden", "rose", "tulip"]
    assert strength.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]  # one image is chance
    assert term_strengths([[{"once"}], []])[1].shape == (2, 0)
