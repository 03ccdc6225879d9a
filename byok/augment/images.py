"""Read the images of clients: base64, with a format that may be wrong."""

import base64
import binascii
import re

from byok.augment.body import text
from byok.chat import ImagePart, Json


def read_image(node: Json) -> ImagePart | None:
    """Read `{image_data, format}`; return None if the data is not an image.

    The magic bytes decide on the type; the format is only a fallback. Nothing is ever
    fetched: data that is not base64 is not an image.
    """
    data = "".join(text(node, "image_data").split())
    own_type = data_url_type(data)
    if own_type:
        data = data.partition(",")[2]
    try:
        head = base64.b64decode(data[:64], validate=True)
    except (binascii.Error, ValueError):
        return None
    media_type = next((m for magic, m in _MAGIC if head.startswith(magic)), "")
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        media_type = "image/webp"
    media_type = media_type or _media_type(own_type or text(node, "format"))
    whole = len(data) % 4 == 0 and _BASE64.fullmatch(data)
    return ImagePart(media_type, data) if whole and media_type else None


def data_url_type(data: str) -> str:
    """Return the media type of a data URL, "" for anything else."""
    if not data.startswith("data:"):
        return ""
    declared = data[: data.find(",") + 1].removeprefix("data:")
    return declared.partition(";")[0].rstrip(",").lower() or "text/plain"


_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_MAGIC = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)
_NAMED = {
    "0": "image/png", "1": "image/png", "2": "image/jpeg", "3": "image/gif",
    "4": "image/webp",
    "png": "image/png", "jpeg": "image/jpeg", "jpg": "image/jpeg",
    "gif": "image/gif", "webp": "image/webp",
}  # fmt: skip


def _media_type(form: str) -> str:
    """Read a format: a media type, its subtype, or the client's number."""
    return _NAMED.get(form.lower().removeprefix("image/"), "")
