"""Placeholders of equal length, in which nothing can be read."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.record import Head, Hop
from byok.features.capture.capture import Capture, Piece
from byok.features.capture.scrub import hide_content, hide_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"message": "Hi, \\"Bob\\"!\\n"}', '{"message": "xx, \\"xxx\\"x\\n"}'),
        ('{"role": "user", "n": 42}', '{"role": "user", "n": 11}'),
        ('{"input_tokens": 42, "ok": true}', '{"input_tokens": 42, "ok": true}'),
        ('{"src/my file": 1}', '{"xxxxxx xxxx": 1}'),
        ('{"input": {"type": "Bob"}, "type": "x"}', None),
        ('data: {"type": "ping"}\n\ndata: [DONE]\n', None),
        ("event: message_stop\ndata: {}\n", None),
        ("Bob's number is 555", "xxxxx xxxxxx xx 111"),
        ('{"a": "\\u00e4\\\\x"}', '{"a": "xxxxxx\\\\x"}'),
        ('{"arguments": "{\\"path\\": \\"a.py\\"}"}', None),
        ('{"text": "[redacted]"}', '{"text": "[redacted]"}'),
        ('{"cut": "in the mid', '{"cut": "xx xxx xxx'),
        (": comment of Bob", ": xxxxxxx xx xxx"),
    ],
)
def test_hidden_texts(text: str, expected: str | None) -> None:
    kept = {
        '{"input": {"type": "Bob"}, "type": "x"}': (
            '{"input": {"xxxx": "xxx"}, "type": "x"}'
        ),
        '{"arguments": "{\\"path\\": \\"a.py\\"}"}': (
            '{"arguments": "{\\"xxxx\\": \\"xxxx\\"}"}'
        ),
    }
    assert hide_text(text) == (expected or kept.get(text, text))


@given(st.text())
def test_any_text_keeps_its_length(text: str) -> None:
    assert len(hide_text(text)) == len(text)


@given(st.recursive(st.text() | st.integers(), st.lists, max_leaves=9))
def test_json_stays_json_and_loses_its_words(value: object) -> None:
    shown = hide_text(json.dumps({"text": value}))
    json.loads(shown)
    rest = re.sub(r"\\.", "", shown.removeprefix('{"text": '))
    assert set(re.findall(r"[a-zA-Z02-9]", rest)) <= {"x"}


def test_pieces_are_cut_where_they_were() -> None:
    pieces = (
        Piece(0, Hop.TO_CLIENT, head=Head("200", (("A", "b"),))),
        Piece(1, Hop.TO_CLIENT, text='{"text": "se'),
        Piece(2, Hop.FROM_CLIENT, text="other"),
        Piece(3, Hop.TO_CLIENT, text='cret"}'),
    )
    shown = hide_content(Capture({"id": "x"}, pieces))
    assert shown.facts == {"id": "x"}
    expected = ["", '{"text": "xx', "xxxxx", 'xxxx"}']
    assert [piece.text for piece in shown.pieces] == expected
    assert shown.pieces[0] == pieces[0]
