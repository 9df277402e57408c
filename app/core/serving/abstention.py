"""Abstention: an image that is unlike all training images gets no cluster."""

NONE_OF_THESE = "none of these"  # instead of the name of a cluster


def is_novel(novelty: float | None, false_alarm_rate: float | None) -> bool:
    """Whether to abstain, if this share of the images of known kinds may be refused by mistake.

    Novelty is the share of the training images that are less unusual, so the rate is its
    complement."""
    if novelty is None or false_alarm_rate is None:
        return False
    return novelty > 1 - false_alarm_rate
