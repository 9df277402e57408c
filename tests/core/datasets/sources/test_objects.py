"""Prefixes of an S3-compatible store, against a real server."""

import boto3
import pytest

from app.core.datasets.sources.objects import ObjectReader, check_object_url, list_objects
from app.core.platform.errors import ImageTooLarge, SourceForbidden, SourceUnreadable
from app.core.platform.settings import Settings
from app.core.storage.buckets import ObjectUrl
from tests.conftest import MakeSettings

_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture
def settings(s3_url: str, make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name, value in _CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=s3_url)
    client.create_bucket(Bucket="photos")
    for key in ("a/2.jpg", "a/1.jpg", "a/b/3.jpg", "a/.hidden", "a/folder/", "ab/4.jpg", "z.jpg"):
        body = b"" if key.endswith("/") else key.encode()
        client.put_object(Bucket="photos", Key=key, Body=body)
    client.close()
    return make_settings(s3_endpoint=s3_url, source_buckets="s3://photos", max_image_bytes=7)


def test_the_objects_below_a_prefix(settings: Settings) -> None:
    found = list(list_objects(settings, "s3://photos/a"))
    assert [row["name"] for row in found] == ["1.jpg", "2.jpg", "b/3.jpg"]
    reader = ObjectReader(settings)
    assert reader.read(ObjectUrl("photos", found[0]["key"])) == b"a/1.jpg"
    with pytest.raises(ImageTooLarge):
        reader.read(ObjectUrl("photos", "a/b/3.jpg"))
    with pytest.raises(SourceUnreadable):
        reader.read(ObjectUrl("photos", "a/none.jpg"))


def test_a_whole_bucket_and_none(settings: Settings) -> None:
    assert len(list(list_objects(settings, "s3://photos"))) == 5
    allowed = settings.model_copy(update={"source_buckets": ("s3://missing",)})
    with pytest.raises(SourceUnreadable):
        list(list_objects(allowed, "s3://missing/x"))


@pytest.mark.parametrize(
    "url",
    ["s3://other/a", "s3://photos", "s3://photos/ab", "s3://photos/a/../z", "s3:///a", "s3://",
     "https://photos/a", "gs://photos/a", "s3://photos/a//b"],
)  # fmt: skip
def test_objects_outside_are_forbidden(url: str) -> None:
    assert check_object_url("s3://photos/a/b/", ["s3://photos/a"]) == ObjectUrl("photos", "a/b")
    with pytest.raises(SourceForbidden):
        check_object_url(url, ["s3://photos/a/"])
    with pytest.raises(SourceForbidden):
        check_object_url("s3://photos/a", [])
