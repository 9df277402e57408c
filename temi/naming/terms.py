"""Terms of file names, folders and metadata that may name a group."""

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from temi.naming.scores import Strengths

_MAX_PHRASE = 3  # words
_MAX_LENGTH = 40
_MIN_LENGTH = 3
_MIN_IMAGES = 2  # of a group that must have a term: that of a single image is chance
_SUFFIX = re.compile(r"\.[A-Za-z]{2,5}$")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORDS = re.compile(r"[^\W\d_]+")
# Names that cameras, phones and programs give, and words without content.
_STOP = frozenset(
    """
    and archive batch bild cam camera capture copy crop data dataset dcim dcp download downloads dsc
    dscf dscn edit edited export file files final folder for foto frame from gopr image images img
    imgp input jpeg jpg kopie label labels misc mvimg new old original output pano part photo photos
    pic pics picture pictures png pxl resized sample samples scan screenshot set snapshot test the
    thumb thumbnail tif tiff train unnamed untitled upload uploads val valid validation vid webp
    whatsapp with
    """.split()  # noqa: SIM905 - a list would have a line for each word
)


def terms_of(path: str, values: Iterable[str] = ()) -> set[str]:
    """Return the words and short phrases of a file's path, and of the values of its metadata."""
    found: set[str] = set()
    for part in (*_SUFFIX.sub("", path).split("/"), *values):
        if len(part) <= 4 * _MAX_LENGTH:
            found |= _terms(part)
    return found


def term_strengths(groups: list[list[set[str]]]) -> tuple[list[str], Strengths]:
    """Return the terms that at least two images of a group have, and their share of each group.

    ``groups`` has the terms of each image of each group.
    """
    counts: dict[str, npt.NDArray[np.float64]] = {}
    for group, members in enumerate(groups):
        for terms in members:
            for term in terms:
                counts.setdefault(term, np.zeros(len(groups)))[group] += 1
    kept = sorted(term for term, count in counts.items() if count.max() >= _MIN_IMAGES)
    if not kept:
        return [], np.zeros((len(groups), 0))
    table = np.stack([counts[term] for term in kept], axis=1)
    sizes = np.maximum([len(members) for members in groups], 1)
    return kept, np.where(table >= _MIN_IMAGES, table, 0.0) / sizes[:, None]


def _terms(part: str) -> set[str]:
    words = [word.lower() for word in _WORDS.findall(_CAMEL.sub(" ", part))]
    words = [word for word in words if _MIN_LENGTH <= len(word) <= _MAX_LENGTH]
    words = [word for word in words if word not in _STOP]
    phrase = " ".join(words)
    is_phrase = 1 < len(words) <= _MAX_PHRASE and len(phrase) <= _MAX_LENGTH
    return {*words, phrase} if is_phrase else set(words)
