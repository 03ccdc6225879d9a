"""Attached images and texts: their bytes say what they are."""

import base64

import pytest

from byok.core.chat import ImagePart
from byok.core.wire.attachments import check_image, is_text
from tests.fakes.bodies import PNG


def coded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


PLAIN = coded(b"hello!")


@pytest.mark.parametrize(
    ("raw", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(8), "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(8), "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\n\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"RIFF\n\x00\x00\x00WAVE", "image/heic"),
        (b"hello!", "image/heic"),
    ],
)
def test_an_image_has_the_type_of_its_bytes_before_the_declared_one(
    raw: bytes, media_type: str
) -> None:
    assert check_image(coded(raw), "image/heic") == ImagePart(media_type, coded(raw))


def test_an_image_may_have_line_ends() -> None:
    image = check_image(f" {PNG[:8]}\n{PNG[8:]} ", "")
    assert image == ImagePart("image/png", PNG)


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        pytest.param("", "image/png", id="empty"),
        pytest.param("%%%", "image/png", id="no base64"),
        pytest.param(PNG * 9 + "!!!!", "image/png", id="no base64 after the head"),
        pytest.param(PNG * 9 + "a", "image/png", id="cut"),
        pytest.param(PLAIN, "", id="of no type"),
        pytest.param("file:///etc/passwd", "image/png", id="a file's address"),
    ],
)
@pytest.mark.case("B86")
def test_what_is_no_image_is_none(data: str, declared: str) -> None:
    assert check_image(data, declared) is None


def test_texts_are_told_by_their_type() -> None:
    texts = ("text/x", "application/json; charset=utf-8", "image/svg+xml")
    assert all(map(is_text, (*texts, "application/vnd.x+yaml", "application/x-sh")))
    assert not any(map(is_text, ("", "application/pdf", "image/png")))
