"""Pictures get their type from their bytes; nothing is ever fetched."""

import base64
from typing import Any

import pytest

from byok.protocols.augment.nodes import read_image
from tests.fakes.bodies import PNG


def coded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


JPEG = coded(b"\xff\xd8\xff\xe0" + bytes(8))
GIF = coded(b"GIF89a" + bytes(6))
WEBP = coded(b"RIFF\x00\x00\x00\x00WEBPVP8 ")
PLAIN = coded(b"hello!")


@pytest.mark.parametrize(
    ("data", "form", "media_type"),
    [
        pytest.param(PNG, 1, "image/png", id="png"),
        pytest.param(JPEG, 2, "image/jpeg", id="jpeg"),
        pytest.param(GIF, 3, "image/gif", id="gif"),
        pytest.param(WEBP, 4, "image/webp", id="webp"),
        pytest.param(JPEG, 1, "image/jpeg", id="the bytes win over the number"),
        pytest.param(PLAIN, 0, "image/png", id="unspecified"),
        pytest.param(PLAIN, 1, "image/png", id="number 1"),
        pytest.param(PLAIN, 2, "image/jpeg", id="number 2"),
        pytest.param(PLAIN, 3, "image/gif", id="number 3"),
        pytest.param(PLAIN, 4, "image/webp", id="number 4"),
        pytest.param(PLAIN, "4", "image/webp", id="a number as text"),
        pytest.param(PLAIN, "png", "image/png", id="a word"),
        pytest.param(PLAIN, "image/JPEG", "image/jpeg", id="a media type"),
        pytest.param(f"data:image/png;base64,{PNG}", 0, "image/png", id="a data URL"),
        pytest.param(f" {PNG[:8]}\n{PNG[8:]} ", 1, "image/png", id="with line ends"),
    ],
)
def test_image_gets_its_media_type(data: str, form: Any, media_type: str) -> None:
    image = read_image({"image_data": data, "format": form})
    assert image is not None
    assert image.media_type == media_type
    assert base64.b64decode(image.data, validate=True)


@pytest.mark.parametrize(
    ("data", "form"),
    [
        pytest.param("", 1, id="empty"),
        pytest.param(None, 1, id="null"),
        pytest.param(["x"], 1, id="a list"),
        pytest.param("%%%", 1, id="no base64"),
        pytest.param("эээ", 1, id="another script"),
        pytest.param(PNG * 9 + "!!!!", 1, id="no base64 after the head"),
        pytest.param(PNG[:-1], 1, id="a wrong length"),
        pytest.param(PLAIN, None, id="no format"),
        pytest.param(PLAIN, 9, id="an unknown number"),
        pytest.param(PLAIN, [1], id="a list as format"),
        pytest.param(PLAIN, {}, id="an object as format"),
        pytest.param(PLAIN, "image/svg+xml", id="svg"),
        pytest.param("file:///etc/passwd", 1, id="a file's address"),
        pytest.param("http://169.254.169.254/latest", 1, id="a web address"),
    ],
)
@pytest.mark.case("B86")
def test_image_that_is_none_becomes_a_marker(data: Any, form: Any) -> None:
    assert read_image({"image_data": data, "format": form}) is None
