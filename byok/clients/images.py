"""Read images in bodies: only those whose bytes come with the request."""

import re

from byok.chat import ImagePart
from byok.clients.fields import feature_refusal, wrong_field

_DATA_URL = re.compile(r"data:(image/[\w.+-]+)(?:;[^;,]+)*;base64,", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def read_data_url(url: str) -> ImagePart:
    """Read an image in a data URL.

    Raises:
        BadRequest: it is elsewhere, as byok fetches nothing, or no picture.
    """
    head = _DATA_URL.match(url[:200])
    if head is None:
        if url.startswith("data:"):
            raise wrong_field("a data URL", "an image/* in base64")
        raise feature_refusal(
            "byok fetches no pictures", "Send it as a data URL, with its bytes."
        )
    return read_image(head[1], url[head.end() :])


def read_image(media_type: str, data: str) -> ImagePart:
    """Check an image in base64.

    Raises:
        BadRequest: it is none.
    """
    if not media_type.startswith("image/"):
        raise wrong_field("the media type of a picture", "image/*")
    if len(data) % 4 or not _BASE64.fullmatch(data):
        raise wrong_field("the data of a picture", "in base64")
    return ImagePart(media_type, data)
