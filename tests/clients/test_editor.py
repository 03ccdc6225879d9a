"""Texts of settings files: their bytes, paths in them, and changes as lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.clients.editor import (
    Leaf,
    decode_text,
    encode_text,
    list_changes,
    preview_change,
    value_leaves,
)
from byok.core.redact import Redactor
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
        (b"a\r\nb\n", "a\r\nb\n", b"a\r\nb\n\n"),
        (BOM + b"a", "a", BOM + b"a\n"),
    ],
)
def test_encoding_keeps_the_line_ends_of_new_lines(
    raw: bytes, text: str, more: bytes
) -> None:
    decoded = decode_text(raw)
    assert decoded.text == text
    assert encode_text(decoded._replace(text=f"{text}\n")) == more


def test_encoding_other_than_utf8_is_refused_with_its_line() -> None:
    with pytest.raises(ValueError, match=r"line \d: it is not UTF-8"):
        decode_text(b"a\n\xe9")


def test_setting_leaves_name_the_elements_of_lists() -> None:
    value = {"a": [{"name": "x", "y": 1}, {}, 2], "b": {}}
    assert list(value_leaves(value, ())) == [
        Leaf(("a", "name=x", "name"), "'x'"),
        Leaf(("a", "name=x", "y"), "1"),
        Leaf(("a", "[]"), ""),
        Leaf(("a", "[]"), "2"),
        Leaf(("b",), ""),
    ]


@pytest.mark.case("B142")
def test_preview_shows_a_change_without_secrets() -> None:
    redactor = Redactor()
    redactor.add("token-of-byok")
    old = b'{\n  "x": 0,\n  "a.apiToken": "official-0123456789"\n}\n'
    new = b'{\n  "x": 0,\n  "a.apiToken": "token-of-byok"\n}\n'
    lines = preview_change("/f", old, new, redactor)
    assert lines[:2] == ["--- /f", "+++ /f"]
    assert lines[2:] == [
        "@@ -2,3 +2,3 @@",
        '   "x": 0,',
        '-  "a.apiToken": "[redacted]"',
        '+  "a.apiToken": "[redacted]"',
        " }",
    ]


def test_preview_does_not_show_line_ends_as_changes() -> None:
    lines = preview_change("/f", BOM + b"a\r\nb\r\n", BOM + b"a\r\nb\r\nc\r\n", str)
    assert lines[3:] == [" b", "+c"]


def test_changes_are_lines_with_their_numbers_and_without_secrets() -> None:
    before = b'{\n  "size": 14,\n  "apiToken": "old-secret"\n}\n'
    after = b'{\n  "size": 14,\n  "apiToken": "new-secret"\n}\n'
    hidden = '  "apiToken": ' + "\u2022" * 8
    rows = [tuple(row) for row in list_changes(before, after, str)]
    assert rows == [
        (" ", 2, '  "size": 14,'),
        ("-", 3, hidden),
        ("+", 3, hidden),
        (" ", 4, "}"),
    ]


@pytest.mark.parametrize("before", [None, b"a: 1\n"])
def test_changes_go_through_what_hides_keys(before: bytes | None) -> None:
    rows = list_changes(before, b"b: 2\n", lambda text: f"<{text}>")
    assert tuple(rows[-1]) == ("+", 1, "<b: 2>")
    assert len(rows) == (1 if before is None else 2)
