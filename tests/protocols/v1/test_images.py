"""Pictures in bodies: only those that come with them."""

import pytest

from byok.core.chat import ImagePart
from byok.core.errors import BadRequest
from byok.protocols.v1.fields import read_data_url, read_image

PNG = "iVBORw0KGgo="


@pytest.mark.parametrize(
    "head", ["data:image/png;base64,", "data:image/png;charset=x;base64,"]
)
def test_images_data_url_is_read(head: str) -> None:
    assert read_data_url(head + PNG) == ImagePart("image/png", PNG)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://example.com/a.png", "fetches no pictures"),
        ("file:///etc/passwd", "fetches no pictures"),
        ("", "fetches no pictures"),
        ("data:text/html;base64,aaaa", "must be an image"),
        ("data:image/png,aaaa", "must be an image"),
        ("data:image/png;base64,a", "in base64"),
        ("data:image/png;base64,a\nb=", "in base64"),
    ],
)
def test_images_others_are_refused(url: str, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        read_data_url(url)


def test_images_media_type_must_be_that_of_an_image() -> None:
    with pytest.raises(BadRequest, match="media type"):
        read_image("application/pdf", PNG)
