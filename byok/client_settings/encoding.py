"""Bytes of a settings file as text with plain line ends, and back."""

import codecs
from typing import NamedTuple


class DecodedText(NamedTuple):
    """A text, and what `encode_text` needs to give the same bytes again."""

    text: str
    has_bom: bool = False
    has_crlf: bool = False


def decode_text(raw: bytes) -> DecodedText:
    """Decode UTF-8; where all line ends are CRLF, the text has LF.

    Raises:
        ValueError: it is not UTF-8.
    """
    has_bom = raw.startswith(codecs.BOM_UTF8)
    try:
        text = raw.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: it is not UTF-8") from None
    lines = text.count("\n")
    has_crlf = 0 < lines == text.count("\r\n") == text.count("\r")
    return DecodedText(
        text.replace("\r\n", "\n") if has_crlf else text, has_bom, has_crlf
    )


def encode_text(decoded: DecodedText) -> bytes:
    """Return the bytes of a text that `decode_text` gave, or of a changed one."""
    text, has_bom, has_crlf = decoded
    text = text.replace("\n", "\r\n") if has_crlf else text
    return (codecs.BOM_UTF8 if has_bom else b"") + text.encode()
