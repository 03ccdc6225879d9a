"""Images and texts in base64, as clients of any protocol attach them.

The type that a client declares may be wrong, and some models refuse such an image. So
the first bytes decide.
"""

import binascii
import re
from base64 import b64decode

from byok.core.chat import ImagePart

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_MAGIC = (
    (re.compile(rb"\x89PNG"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
)
_TEXT_TYPES = ("json", "xml", "yaml", "toml", "javascript", "typescript", "x-sh")


def check_image(data: str, declared: str) -> ImagePart | None:
    """Return an image, None if it is not valid base64 or its type is unknown."""
    data = "".join(data.split())
    try:
        head = b64decode(data[:64], validate=True)
    except (binascii.Error, ValueError):
        return None
    kinds = (kind for magic, kind in _MAGIC if magic.match(head))
    media_type = next(kinds, declared)
    is_whole = len(data) % 4 == 0 and _BASE64.fullmatch(data)
    return ImagePart(media_type, data) if is_whole and media_type else None


def is_text(media_type: str) -> bool:
    """Tell whether a media type, in lower case, is that of a text."""
    bare = media_type.partition(";")[0].strip()
    return bare.startswith("text/") or bare.endswith(_TEXT_TYPES)
