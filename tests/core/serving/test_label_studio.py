"""Labeling configurations of Label Studio."""

import pytest

from app.core.platform.errors import ImageRejected, InvalidRequest
from app.core.serving.label_studio import parse_config, references_of

_CONFIG = """<View>
  <!-- a comment -->
  <Header value="What is it?"/>
  <Image name="photo" value="$url"/>
  <Text name="text" value="$text"/>
  <Choices name="mood" toName="text"><Choice value="good"/></Choices>
  <Choices name="kind" toName="photo"><Choice value="cats"/><Choice value="dogs"/></Choices>
</View>"""


def test_the_choices_about_an_image_are_found() -> None:
    found = parse_config(_CONFIG)
    assert (found.control, found.object, found.field) == ("kind", "photo", "url")
    assert found.choices == frozenset({"cats", "dogs"})


def test_choices_of_the_task() -> None:
    config = '<View><Image name="i" value="$i"/><Choices name="c" toName="i" value="$c"/></View>'
    assert parse_config(config).choices is None


@pytest.mark.parametrize(
    "config",
    [
        "",
        "no xml",
        "<View>",
        "<View/>",
        '<View><Image name="i" value="$i"/></View>',
        '<View><Image name="i" value="$i"/><Choices name="c" toName="other"/></View>',
        '<View><Image name="i" value="fixed.jpg"/><Choices name="c" toName="i"/></View>',
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><View>&b;</View>',
        "<View>\x00</View>",
    ],
)
def test_other_configurations_are_refused(config: str) -> None:
    with pytest.raises(InvalidRequest, match="label_config"):
        parse_config(config)


def test_references_of_tasks() -> None:
    tasks: list[dict[str, object]] = [{"url": "https://example.org/a.jpg"}, {}, {"url": 3}]
    found = references_of(parse_config(_CONFIG), tasks)
    assert found[0] == "https://example.org/a.jpg"
    assert all(isinstance(one, ImageRejected) for one in found[1:])
