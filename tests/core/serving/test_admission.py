"""Admission control: the queue is bounded, and a single request always fits."""

import pytest

from app.core.platform.errors import QueueFull
from app.core.serving.admission import Admission


def test_capacity_is_released() -> None:
    admission = Admission(max_images=4, max_bytes=100)
    with admission.reserve() as reservation:
        reservation.add(images=3, bytes_=50)
        assert (admission.images, admission.bytes) == (3, 50)
    assert (admission.images, admission.bytes) == (0, 0)


def test_too_many_images_are_refused() -> None:
    admission = Admission(max_images=2, max_bytes=100)
    with admission.reserve() as one, admission.reserve() as two:
        one.add(images=1)
        two.add(images=1)
        with pytest.raises(QueueFull), admission.reserve():
            pass
        assert admission.images == 2
    assert admission.images == 0


def test_too_many_bytes_are_refused() -> None:
    admission = Admission(max_images=10, max_bytes=100)
    with admission.reserve() as one, admission.reserve() as two:
        one.add(bytes_=60)
        with pytest.raises(QueueFull):
            two.add(bytes_=60)
        two.add(bytes_=40)
    assert admission.bytes == 0


def test_a_request_that_is_alone_fits() -> None:
    admission = Admission(max_images=2, max_bytes=100)
    with admission.reserve() as reservation:
        reservation.add(images=9, bytes_=1000)
        with pytest.raises(QueueFull), admission.reserve():
            pass
    with admission.reserve():
        pass


def test_a_failed_request_releases_its_capacity() -> None:
    admission = Admission(max_images=2, max_bytes=100)

    def fail() -> None:
        with admission.reserve() as reservation:
            reservation.add(bytes_=10)
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        fail()
    assert (admission.images, admission.bytes) == (0, 0)


def test_an_incomplete_body_takes_no_queue_capacity() -> None:
    admission = Admission(max_images=2, max_bytes=100, max_arriving_bytes=1000)
    with admission.reserve() as slow, admission.reserve() as quick:
        slow.add_arriving(200)  # more than fits in the queue
        assert (admission.images, admission.bytes, admission.arriving_bytes) == (0, 0, 200)
        quick.add_arriving(60)
        quick.enqueue_body(images=2)
        assert (admission.images, admission.bytes, admission.arriving_bytes) == (2, 60, 200)
        with pytest.raises(QueueFull):
            slow.enqueue_body(images=1)
    assert (admission.images, admission.bytes, admission.arriving_bytes) == (0, 0, 0)


def test_arriving_bytes_are_limited() -> None:
    admission = Admission(max_images=2, max_bytes=100, max_arriving_bytes=1000)
    with admission.reserve() as one, admission.reserve() as two:
        one.add_arriving(600)
        with pytest.raises(QueueFull):
            two.add_arriving(600)
        two.add_arriving(400)
    assert admission.arriving_bytes == 0


def test_one_key_has_a_share_while_another_waits() -> None:
    admission = Admission(max_images=10, max_bytes=100, key_share=0.5)
    with (
        admission.reserve("a") as one,
        admission.reserve("a") as two,
        admission.reserve("b") as other,
    ):
        one.add(images=4)
        other.add(images=1)
        with pytest.raises(QueueFull):
            two.add(images=2)
        two.add(images=1)
        with admission.reserve("b") as more:
            more.add(images=4)


def test_a_refused_key_gets_its_share_when_it_retries() -> None:
    """A key that had the whole queue is limited to its share after another was refused."""
    admission = Admission(max_images=10, max_bytes=100, key_share=0.5)
    with admission.reserve("a") as first, admission.reserve("a") as second:
        first.add(images=5)
        second.add(images=5)
        with pytest.raises(QueueFull), admission.reserve("b"):
            pass
        second.release()
        second.images = 0
        with pytest.raises(QueueFull), admission.reserve("a"):
            pass
        with admission.reserve("b") as other:
            other.add(images=5)


def test_released_keys_take_no_memory() -> None:
    admission = Admission(max_images=10, max_bytes=100)
    for number in range(100):
        with admission.reserve(f"key_{number}") as reservation:
            reservation.add_arriving(1)
            reservation.enqueue_body(images=1)
    assert not admission._images._by_key
    assert not admission._arriving._by_key
