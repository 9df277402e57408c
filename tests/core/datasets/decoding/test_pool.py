"""Decoder processes: their limits, and their replacement."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

from app.core.datasets.decoding.headers import DecodeLimits
from app.core.datasets.decoding.pool import DecoderPool
from app.core.datasets.images import cut_square, make_thumbnail
from app.core.platform.errors import ImageTooLarge, ImageUndecodable, UnsupportedFormat
from temi.backbones.cropping import CentralSquare
from tests.hostile_images import deep_png, jpeg_of_scans, tiff_of_pages, webp_claiming
from tests.images import image_bytes, png_bytes
from tests.waiting import LONG_SECONDS, join, wait_for_ends

ODD = ("-m", "tests.core.datasets.decoding.odd_decoder")
MakePool = Callable[..., DecoderPool]
MiB = 1024 * 1024


@pytest.fixture
def make_pool() -> Iterator[MakePool]:
    made: list[DecoderPool] = []

    def make(
        processes: int = 1, program: tuple[str, ...] | None = None, **limits: float
    ) -> DecoderPool:
        options = {} if program is None else {"program": program}
        made.append(DecoderPool(processes, DecodeLimits(**limits), **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def _pid(pool: DecoderPool) -> int:
    """The id of the process that decoded the image."""
    return int(pool.inspect(png_bytes()).notes[0])


@pytest.mark.parametrize(
    ("format_", "processes"), [("PNG", 1), ("JPEG", 0)], ids=["by a process", "here"]
)
def test_results_of_a_process_equal_those_in_process(
    make_pool: MakePool, format_: str, processes: int
) -> None:
    """A small JPEG is decoded in this process, which is faster."""
    pool, square = make_pool(), CentralSquare(size=8, resize=10)
    data = image_bytes(format_, "navy", (200, 120))
    facts = pool.inspect(data)
    assert (facts.width, facts.height, facts.format, facts.notes) == (200, 120, format_, [])
    np.testing.assert_array_equal(pool.cut_square(data, square), cut_square(data, square))
    assert pool.make_thumbnail(data, 64) == make_thumbnail(data, 64)
    assert len(pool.pids()) == processes
    with pytest.raises(ImageUndecodable, match="damaged"):
        pool.inspect(data[:-50])


def test_refused_images_raise_the_same_errors(make_pool: MakePool) -> None:
    pool = make_pool(pixels=300)
    for data, error in (
        (b"", ImageUndecodable),
        (png_bytes(size=(16, 16))[:40], ImageUndecodable),
        (png_bytes(size=(20, 20)), ImageTooLarge),
        (b"%PDF-1.7\n", UnsupportedFormat),
    ):
        with pytest.raises(error) as caught:
            pool.inspect(data)
        assert caught.value.detail


@pytest.mark.parametrize("way", ["sleep", "compute"])
def test_a_hanging_process_is_killed_and_replaced(make_pool: MakePool, way: str) -> None:
    pool = make_pool(program=ODD, seconds=1)
    before = _pid(pool)
    with pytest.raises(ImageUndecodable, match="longer than 1 s"):
        pool.inspect(png_bytes() + way.encode())
    assert not psutil.pid_exists(before)
    assert _pid(pool) != before


def test_a_hanging_image_delays_no_others(make_pool: MakePool) -> None:
    pool = make_pool(program=ODD, seconds=LONG_SECONDS)
    pool.inspect(png_bytes())

    def hang() -> None:
        with suppress(Exception):  # the pool is closed at the end
            pool.inspect(png_bytes() + b"sleep")

    hanging = threading.Thread(target=hang)
    hanging.start()
    found = {_pid(pool) for _ in range(5)}
    assert hanging.is_alive()
    assert found
    pool.close()
    join(hanging)


def test_memory_is_limited(make_pool: MakePool) -> None:
    pool = make_pool(program=ODD, bytes=100 * MiB)
    with pytest.raises(ImageUndecodable, match="no memory"):
        pool.inspect(png_bytes() + b"allocate")
    assert _pid(pool)


def test_the_memory_of_real_decoders_is_limited(make_pool: MakePool) -> None:
    """More than the header claims: a strip of a TIFF as large as the image."""
    pool = make_pool(bytes=40 * MiB)
    data = image_bytes("PNG", size=(3000, 3000), mode="L")  # 9 MB of pixels
    assert pool.inspect(data).width == 3000
    with pytest.raises(ImageTooLarge, match="MiB"):
        pool.inspect(image_bytes("PNG", size=(4000, 4000)))


def test_an_image_that_crashes_the_process_is_refused(make_pool: MakePool) -> None:
    pool = make_pool(program=ODD)
    with pytest.raises(ImageUndecodable, match="exit code 3"):
        pool.inspect(png_bytes() + b"exit")
    assert _pid(pool)


def test_a_process_that_was_killed_is_replaced_without_an_error(make_pool: MakePool) -> None:
    pool = make_pool(program=ODD)
    before = _pid(pool)
    os.kill(before, signal.SIGKILL)
    assert _pid(pool) != before


def test_a_parent_that_is_killed_leaves_no_children(tmp_path: Path) -> None:
    program = (
        "import time\n"
        "from app.core.datasets.decoding.headers import DecodeLimits\n"
        "from app.core.datasets.decoding.pool import DecoderPool\n"
        "import threading\n"
        f"pool = DecoderPool(2, DecodeLimits(), program={ODD!r})\n"
        "from tests.images import png_bytes\n"
        "pool.inspect(png_bytes())\n"
        "threading.Thread(target=pool.inspect, args=(png_bytes() + b'sleep',)).start()\n"
        "pool.inspect(png_bytes())\n"
        "print('ready', flush=True)\n"
        "time.sleep(3600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        children = psutil.Process(parent.pid).children()
        assert children
        parent.kill()
    wait_for_ends(children)


def test_hostile_files_cost_little(make_pool: MakePool) -> None:
    pool, square = make_pool(), CentralSquare(size=224, resize=256)
    pool.inspect(png_bytes())
    (decoder,) = [psutil.Process(pid) for pid in pool.pids()]
    started = decoder.cpu_times()
    with pytest.raises(ImageUndecodable, match="scans"):
        pool.inspect(jpeg_of_scans(6_000))
    with pytest.raises(ImageTooLarge, match="WEBP"):
        pool.inspect(webp_claiming(7_000, 7_000))
    assert pool.inspect(tiff_of_pages(20_000)).notes == ["animated: first frame used"]
    deep = deep_png(7_000)
    assert pool.inspect(deep).width == 7_000
    assert pool.cut_square(deep, square).max() == 0
    assert pool.pids() == [decoder.pid]  # it was not ended by its limits
    ended = decoder.cpu_times()
    assert ended.user + ended.system - started.user - started.system < 10
    assert _peak_bytes(decoder.pid) < 300 * MiB


def _peak_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


def test_images_decoded_together_get_what_each_gets_alone(make_pool: MakePool) -> None:
    pool = make_pool()
    whole = png_bytes()
    images = [
        whole,
        whole[: len(whole) // 2],
        b"not an image",
        b"",
        webp_claiming(16_000, 16_000),
        image_bytes("JPEG", "navy", (200, 120)),
    ]
    found = pool.inspect_all(images)
    assert [type(facts).__name__ for facts in found] == [
        "ImageFacts",
        "ImageUndecodable",
        "ImageUndecodable",
        "ImageUndecodable",
        "ImageTooLarge",
        "ImageFacts",
    ]
    for data, together in zip(images, found, strict=True):
        alone = pool.inspect_all([data])[0]
        assert str(together) == str(alone)


def test_an_image_that_kills_the_decoder_does_not_refuse_those_beside_it(
    make_pool: MakePool,
) -> None:
    pool = make_pool(program=ODD)
    found = pool.inspect_all([png_bytes(), png_bytes("navy"), png_bytes() + b"exit"])
    assert [type(facts).__name__ for facts in found] == [
        "ImageFacts",
        "ImageFacts",
        "ImageUndecodable",
    ]
    assert "crashes the decoder" in str(found[2])
