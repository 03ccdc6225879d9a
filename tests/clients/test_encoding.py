"""Bytes of settings files as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.clients.editor import decode_text, encode_text
from tests.fakes.settings_files import BOM

ENDS = st.sampled_from(["\n", "\r\n", "\r", "", "a", "\ufeff", "é"])


@given(st.lists(ENDS).map("".join), st.booleans())
def test_encoding_gives_the_same_bytes(text: str, has_bom: bool) -> None:
    raw = (BOM if has_bom else b"") + text.encode()
    assert encode_text(decode_text(raw)) == raw


@pytest.mark.parametrize(
    ("raw", "text", "more"),
    [
        (b"a\r\nb", "a\nb", b"a\r\nb\r\n"),
        (b"a\nb", "a\nb", b"a\nb\n"),
        (b"a\r\nb\n", "a\r\nb\n", b"a\r\nb\n\n"),
        (b"a\rb\r\n", "a\rb\r\n", b"a\rb\r\n\n"),
        (BOM + b"a", "a", BOM + b"a\n"),
    ],
)
def test_encoding_keeps_the_line_ends_of_new_lines(
    raw: bytes, text: str, more: bytes
) -> None:
    decoded = decode_text(raw)
    assert decoded.text == text
    assert encode_text(decoded._replace(text=f"{text}\n")) == more


@pytest.mark.parametrize("raw", ["{}".encode("utf-16"), b"a\n\xe9", b"\xff\xfe{\0"])
def test_encoding_other_than_utf8_is_refused_with_its_line(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"line \d: it is not UTF-8"):
        decode_text(raw)
