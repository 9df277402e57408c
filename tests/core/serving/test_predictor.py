"""The predictor: batches, shared backbones, loading, unloading, deadlines, bad images."""

import threading
import time
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from app.core.datasets.decoding.headers import DecodeLimits
from app.core.datasets.decoding.pool import DecoderPool
from app.core.models.files import ModelFiles
from app.core.platform.errors import DeadlineExceeded, ImageRejected, PredictorUnavailable
from app.core.serving import predictor as predictors
from app.core.serving.messages import (
    Loaded,
    LoadFailed,
    LoadModel,
    Predicted,
    PredictFailure,
    PredictRequest,
    PredictResult,
    Unloaded,
)
from app.core.serving.predictor import Predictor
from tests.conftest import MakeSettings
from tests.core.serving.small_models import (
    CLUSTERS,
    Loader,
    Replies,
    expected,
    files,
    png,
    probabilities,
)
from tests.hostile_images import jpeg_of_scans, tiff_of_pages, webp_claiming
from tests.waiting import LONG_SECONDS, wait_until
from tests.worker.tiny import DIM

ODD = ("-m", "tests.core.datasets.decoding.odd_decoder")

MakePredictor = Callable[..., Predictor]


@pytest.fixture
def loader(monkeypatch: pytest.MonkeyPatch) -> Loader:
    loader = Loader()
    monkeypatch.setattr(
        predictors, "load_served_model", lambda files, settings, known=(): loader(files, known)
    )
    return loader


@pytest.fixture
def replies() -> Replies:
    return Replies()


@pytest.fixture
def make_predictor(
    make_settings: MakeSettings, loader: Loader, replies: Replies
) -> Iterator[MakePredictor]:
    made: list[Predictor] = []

    def make(**changes: object) -> Predictor:
        made.append(Predictor(make_settings(**{"torch_threads": 2, **changes}), replies))
        return made[-1]

    yield make
    for predictor in made:
        predictor.close()


def _request(
    number: int,
    model: ModelFiles,
    *images: bytes,
    seconds: float = LONG_SECONDS,
    features: object = None,
    embed_only: bool = False,
) -> PredictRequest:
    return PredictRequest(
        id=number,
        model=model,
        deadline=time.monotonic() + seconds,
        images=images,
        features=features,  # type: ignore[arg-type]
        embed_only=embed_only,
    )


def _make_impatient(predictor: Predictor) -> None:
    """Makes every model count as idle."""
    predictor._settings = predictor._settings.model_copy(update={"predict_idle_seconds": 0.0})
    predictor._models._idle_seconds = 0.0


def test_concurrent_requests_get_the_results_of_single_requests(
    make_predictor: MakePredictor, replies: Replies
) -> None:
    predictor, model = make_predictor(), files("m")
    data = [png(i) for i in range(60)]
    for number, item in enumerate(data):
        predictor.handle(_request(number, model, item))
    found = replies.wait(*range(60))
    answers = np.concatenate([probabilities(found[number]) for number in range(60)])
    np.testing.assert_allclose(answers, expected(data, model), atol=1e-5)


def test_the_features_of_images_give_their_probabilities(
    make_predictor: MakePredictor, replies: Replies
) -> None:
    predictor, model = make_predictor(), files("m")
    data = [png(i) for i in range(6)]
    predictor.handle(_request(0, model, *data, embed_only=True))
    predictor.handle(_request(1, model, *data))  # both wait for the model, and share batches
    found = replies.wait(0, 1)
    features = np.stack(found[0].outcomes)  # type: ignore[union-attr, arg-type]
    assert features.shape == (6, DIM)
    predictor.handle(_request(2, model, features=features))
    again = replies.wait(2)[2]
    np.testing.assert_array_equal(probabilities(again), probabilities(found[1]))


def test_waiting_requests_share_batches(
    make_predictor: MakePredictor, loader: Loader, replies: Replies
) -> None:
    predictor, model = make_predictor(), files("m")
    loader.computing.clear()
    for number in range(16):
        predictor.handle(_request(number, model, png(number)))
    wait_until(
        lambda: predictor._scheduler.waiting >= 16 - 2 * 4
    )  # two threads hold up to four each
    loader.computing.set()
    found = replies.wait(*range(16))
    batches = [batch for answer in found.values() for batch in answer.batches]  # type: ignore[union-attr]
    assert sum(batch.size for batch in batches) == 16
    assert max(batch.size for batch in batches) > 1
    assert max(batch.size for batch in batches) <= 4  # what a core computes best
    assert all(batch.wait_seconds >= 0 and batch.compute_seconds > 0 for batch in batches)


def test_one_request_of_many_images_keeps_their_order(
    make_predictor: MakePredictor, replies: Replies
) -> None:
    predictor, model = make_predictor(), files("m")
    data = [png(i) for i in range(30)]
    predictor.handle(_request(1, model, *data))
    np.testing.assert_allclose(probabilities(replies.wait(1)[1]), expected(data, model), atol=1e-5)


def test_bad_images_get_an_error_entry(make_predictor: MakePredictor, replies: Replies) -> None:
    predictor, model = make_predictor(max_image_bytes=10_000), files("m")
    data = [png(0), b"no image", png(1), b"", b"x" * 10_001]
    predictor.handle(_request(1, model, *data))
    predictor.handle(_request(2, model, b"nothing"))
    found = replies.wait(1, 2)
    outcomes = found[1].outcomes  # type: ignore[union-attr]
    kinds = [outcome.code if isinstance(outcome, ImageRejected) else "" for outcome in outcomes]
    assert kinds == ["", "image_undecodable", "", "image_undecodable", "image_too_large"]
    third = outcomes[2].probabilities  # type: ignore[union-attr]
    np.testing.assert_allclose(third, expected([png(1)], model)[0], atol=1e-5)
    assert isinstance(found[2].outcomes[0], ImageRejected)  # type: ignore[union-attr]


def test_images_that_are_too_expensive_get_an_error_entry(
    make_predictor: MakePredictor, replies: Replies
) -> None:
    predictor, model = make_predictor(), files("m")
    poisoned = [jpeg_of_scans(6_000), webp_claiming(7_000, 7_000)]
    predictor.handle(_request(1, model, png(0), *poisoned, tiff_of_pages(20_000), png(1)))
    predictor.handle(_request(2, model, png(2)))
    found = replies.wait(1, 2)
    outcomes = found[1].outcomes  # type: ignore[union-attr]
    kinds = [outcome.code if isinstance(outcome, ImageRejected) else "" for outcome in outcomes]
    assert kinds == ["", "image_undecodable", "image_too_large", "", ""]
    assert isinstance(found[2], PredictResult)


def test_an_image_that_hangs_delays_no_other_request(
    make_predictor: MakePredictor, replies: Replies, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools: list[DecoderPool] = []

    def odd_pool(_settings: object, processes: int) -> DecoderPool:
        pools.append(DecoderPool(processes, DecodeLimits(seconds=4), program=ODD))
        return pools[-1]

    monkeypatch.setattr(predictors, "decoder_pool", odd_pool)
    predictor, model = make_predictor(torch_threads=1), files("m")
    predictor.handle(_request(0, model, png(0)))
    replies.wait(0)
    predictor.handle(_request(1, model, png(1) + b"sleep", png(2)))
    for number in range(10, 20):
        predictor.handle(_request(number, model, png(number)))
    replies.wait(*range(10, 20))
    assert not any(getattr(message, "id", None) == 1 for message in replies.all)
    outcomes = replies.wait(1)[1].outcomes  # type: ignore[union-attr]
    assert isinstance(outcomes[0], ImageRejected)
    assert "longer than 4 s" in outcomes[0].detail
    assert isinstance(outcomes[1], Predicted)
    pools[0].close()


def test_models_of_one_backbone_share_it(
    make_predictor: MakePredictor, loader: Loader, replies: Replies
) -> None:
    predictor = make_predictor()
    one, two, other = files("a"), files("bb"), files("ccc", weights="other")
    for number, model in enumerate((one, two, other)):
        predictor.handle(_request(number, model, png(7)))
    found = replies.wait(0, 1, 2)
    assert loader.backbones == 2
    for number, model in enumerate((one, two, other)):
        np.testing.assert_allclose(
            probabilities(found[number]), expected([png(7)], model), atol=1e-5
        )
    # and their images share batches
    for number in range(10, 30):
        predictor.handle(_request(number, (one, two)[number % 2], png(number)))
    found = replies.wait(*range(10, 30))
    for number in range(10, 30):
        model = (one, two)[number % 2]
        np.testing.assert_allclose(
            probabilities(found[number]), expected([png(number)], model), atol=1e-5
        )


def test_features_need_no_backbone(make_predictor: MakePredictor, replies: Replies) -> None:
    predictor, model = make_predictor(), files("m")
    features = np.random.default_rng(0).normal(size=(50, DIM)).astype(np.float32)
    predictor.handle(_request(1, model, features=features))
    found = probabilities(replies.wait(1)[1])
    assert found.shape == (50, CLUSTERS)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-5)


def test_requests_after_their_deadline_are_not_computed(
    make_predictor: MakePredictor, loader: Loader, replies: Replies
) -> None:
    predictor, model = make_predictor(), files("m")
    loader.hold.clear()
    predictor.handle(_request(1, model, png(1), png(2), seconds=0.0))
    predictor.handle(_request(2, model, png(3)))
    loader.hold.set()
    found = replies.wait(1, 2)
    assert isinstance(found[1], PredictFailure)
    assert isinstance(found[1].error, DeadlineExceeded)
    assert isinstance(found[2], PredictResult)


def test_a_model_that_cannot_be_loaded(make_predictor: MakePredictor, replies: Replies) -> None:
    predictor = make_predictor()
    predictor.handle(_request(1, files("broken"), png(1)))
    predictor.handle(_request(2, files("fine"), png(1)))
    found = replies.wait(1, 2)
    assert isinstance(found[1], PredictFailure)
    assert isinstance(found[1].error, PredictorUnavailable)
    assert "no such tensor" in found[1].error.detail
    assert isinstance(found[2], PredictResult)
    assert any(isinstance(message, LoadFailed) for message in replies.all)


def test_predictions_continue_while_another_model_loads(
    make_predictor: MakePredictor, loader: Loader, replies: Replies
) -> None:
    predictor = make_predictor()
    predictor.handle(_request(1, files("ready"), png(1)))
    replies.wait(1)
    loader.hold.clear()
    predictor.handle(_request(2, files("slow"), png(1)))
    predictor.handle(_request(3, files("ready"), png(1)))
    assert isinstance(replies.wait(3)[3], PredictResult)
    loader.hold.set()
    assert isinstance(replies.wait(2)[2], PredictResult)


def test_the_least_recently_used_model_is_unloaded(
    make_predictor: MakePredictor, loader: Loader, replies: Replies
) -> None:
    predictor = make_predictor(predict_cache_bytes=1)
    for number, name in enumerate(("a", "b", "a")):
        predictor.handle(_request(number, files(name), png(1)))
        assert isinstance(replies.wait(number)[number], PredictResult)
    assert loader.loads == ["a", "b", "a"]
    dropped = [message for message in replies.all if isinstance(message, Unloaded)]
    assert [(message.model.folder, message.reason) for message in dropped][:1] == [("a", "space")]


def test_an_idle_model_is_unloaded(
    make_predictor: MakePredictor, replies: Replies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictors, "_IDLE_CHECK_SECONDS", 0.05)
    predictor = make_predictor()
    predictor.handle(_request(1, files("m"), png(1)))
    replies.wait(1)
    assert not predictor.is_idle
    _make_impatient(predictor)
    message = replies.wait_for(Unloaded)
    assert isinstance(message, Unloaded)
    assert (message.model.folder, message.reason, message.bytes) == ("m", "idle", 0)
    wait_until(lambda: predictor.is_idle, "nothing is loaded")
    predictor.handle(_request(2, files("m"), png(1)))
    assert isinstance(replies.wait(2)[2], PredictResult)


def test_an_unloaded_model_frees_its_memory(
    make_predictor: MakePredictor, replies: Replies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads that computed its last batches do not hold it."""
    monkeypatch.setattr(predictors, "_IDLE_CHECK_SECONDS", 0.05)
    predictor, model = make_predictor(), files("m")
    for number in range(20):
        predictor.handle(_request(number, model, png(number)))
    replies.wait(*range(20))
    backbone = weakref.ref(predictor._models._models[model].shared.backbone)
    _make_impatient(predictor)
    replies.wait_for(Unloaded)
    wait_until(lambda: backbone() is None, "the backbone is gone")


def test_loaded_reports_the_backend(make_predictor: MakePredictor, replies: Replies) -> None:
    predictor, model = make_predictor(), files("m")
    predictor.handle(LoadModel(model=model))
    loaded = replies.wait_for(Loaded)
    assert isinstance(loaded, Loaded)
    assert loaded.backend == "onnx"
    predictor.handle(_request(1, model, png(4)))
    np.testing.assert_allclose(
        probabilities(replies.wait(1)[1]), expected([png(4)], model), atol=1e-6
    )


def test_requests_from_many_threads(make_predictor: MakePredictor, replies: Replies) -> None:
    predictor, model = make_predictor(), files("m")

    def ask(first: int) -> None:
        for number in range(first, first + 25):
            predictor.handle(_request(number, model, png(number % 5)))

    threads = [threading.Thread(target=ask, args=(first,)) for first in (0, 25, 50, 75)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = replies.wait(*range(100))
    wanted = expected([png(i) for i in range(5)], model)
    for number in range(100):
        np.testing.assert_allclose(probabilities(found[number])[0], wanted[number % 5], atol=1e-5)
