"""Broader words for the classes of ImageNet, by the names that timm gives them."""

import numpy as np
import pytest

from temi.backbones.classifier import class_names
from temi.naming.imagenet import CLASSES, with_broader_words


@pytest.mark.parametrize(
    ("name", "broader"),
    [
        ("Labrador retriever", {"dog", "retriever"}),
        ("tabby", {"cat"}),
        ("airliner", {"airplane", "aircraft"}),
        ("sorrel", {"horse"}),
        ("moving van", {"truck"}),
        ("container ship", {"ship", "harbor"}),
        ("tree frog", {"frog", "amphibian"}),
        ("Granny Smith", {"fruit", "apple"}),
        ("seashore", {"beach", "coast", "landscape"}),
    ],
)
def test_broader_words_of_a_class(name: str, broader: set[str]) -> None:
    names = class_names()
    number = next(at for at, found in enumerate(names) if found.partition(",")[0] == name)
    words, strength = with_broader_words(names, np.eye(CLASSES)[[number]])
    assert {word for word, value in zip(words, strength[0], strict=True) if value} == {
        name,
        *broader,
    }


def test_probabilities_are_added() -> None:
    words, strength = with_broader_words(class_names(), np.full((2, CLASSES), 0.001))
    assert strength.shape == (2, len(words))
    assert strength[1, words.index("dog")] == pytest.approx(0.118)
