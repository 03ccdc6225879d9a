"""A capture as lines of JSON, and back."""

import pytest

from byok.core.errors import ByokError
from byok.core.record import Head, Hop
from byok.features.capture.capture import (
    MAGIC,
    Capture,
    Piece,
    decode_capture,
    encode_capture,
)

CAPTURE = Capture(
    {"id": "0123456789abcdef", "endpoint": "/chat"},
    (
        Piece(0.0, Hop.FROM_CLIENT, head=Head("POST /chat", (("A", "b"),))),
        Piece(0.1, Hop.FROM_CLIENT, text="{}\n\u2028ü"),
        Piece(0.2, Hop.TO_UPSTREAM, 1, "one"),
        Piece(0.3, Hop.TO_UPSTREAM, 2, "two"),
        Piece(0.4, Hop.FROM_UPSTREAM, 2, left_out=7),
        Piece(0.5, Hop.TO_CLIENT, head=Head("200")),
    ),
)


def test_a_capture_survives_its_file() -> None:
    raw = encode_capture(CAPTURE)
    assert raw.startswith(MAGIC)
    assert raw.count(b"\n") == len(CAPTURE.pieces) + 1
    assert decode_capture(raw) == CAPTURE


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b'{"byok_capture":2}',
        b'{"byok_capture":1}\n{"at":0}',
        b'{"byok_capture":1}\n{"at":"x","hop":"to_client","text":""}',
        b'{"byok_capture":1}\n{"at":0,"hop":"elsewhere","text":""}',
        b'{"byok_capture":1}\n[]',
        b"\xff",
    ],
)
def test_a_damaged_file_is_an_error_with_a_sentence(raw: bytes) -> None:
    with pytest.raises(ByokError, match="cannot be read"):
        decode_capture(raw)
