"""The built-in words, and those of a team."""

from temi.naming.vocabulary import default_vocabulary, describe, parse_vocabulary


def test_the_built_in_words() -> None:
    words = default_vocabulary()
    assert len(words) == len(set(words)) > 700
    assert {"dog", "airplane", "sunset", "hot air balloon"} <= set(words)
    assert all(word == word.strip() and len(word) < 30 for word in words)


def test_words_of_a_file() -> None:
    text = "bolt M8,  washer\nhex  nut\n\n, bolt M8"
    assert parse_vocabulary(text) == ["bolt M8", "washer", "hex nut"]
    assert describe("hex nut") == "a photo of hex nut"
