"""Memory stays flat: what waits is bounded, and a request that is alone always fits."""

import pytest

from app.core.errors import QueueFull
from app.core.serving.admission import Admission


def test_places_are_given_back() -> None:
    admission = Admission(max_images=4, max_bytes=100)
    with admission.enter() as place:
        place.take(images=2, bytes_=50)
        assert (admission.images, admission.bytes) == (3, 50)
    assert (admission.images, admission.bytes) == (0, 0)


def test_more_images_than_places_are_refused() -> None:
    admission = Admission(max_images=2, max_bytes=100)
    with admission.enter(), admission.enter():
        with pytest.raises(QueueFull), admission.enter():
            pass
        assert admission.images == 2
    assert admission.images == 0


def test_more_bytes_than_fit_are_refused() -> None:
    admission = Admission(max_images=10, max_bytes=100)
    with admission.enter() as one, admission.enter() as two:
        one.take(bytes_=60)
        with pytest.raises(QueueFull):
            two.take(bytes_=60)
        two.take(bytes_=40)
    assert admission.bytes == 0


def test_a_request_that_is_alone_fits() -> None:
    admission = Admission(max_images=2, max_bytes=100)
    with admission.enter() as place:
        place.take(images=9, bytes_=1000)
        with pytest.raises(QueueFull), admission.enter():
            pass
    with admission.enter():
        pass


def test_a_failed_request_leaves_nothing_behind() -> None:
    admission = Admission(max_images=2, max_bytes=100)

    def fail() -> None:
        with admission.enter() as place:
            place.take(bytes_=10)
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fail()
    assert (admission.images, admission.bytes) == (0, 0)
