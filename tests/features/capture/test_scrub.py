"""Pieces lose their secrets before they are written."""

import gzip
import json
import re
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.record import Head, Hop
from byok.core.redact import MARK, Redactor
from byok.features.capture.capture import Capture, Piece
from byok.features.capture.scrub import (
    LONGEST_BASE64,
    RawPiece,
    find_spans,
    find_strings,
    hide_content,
    hide_text,
    scrub,
)
from tests.fakes.clock import check_linear
from tests.fakes.values import forms

KEY = "canary/key+0123456789-ABC_def.ghi="
TEXT = f'{{"message": "It is {KEY}, schön.", "more": "nothing"}}'
SHOWN = f'{{"message": "It is {MARK}, schön.", "more": "nothing"}}'


def redactor() -> Redactor:
    known = Redactor()
    known.add(KEY)
    return known


def texts(*contents: bytes | Head | int, hop: Hop = Hop.FROM_CLIENT) -> list[str]:
    raw = [RawPiece(n, hop, 0, content) for n, content in enumerate(contents)]
    return [piece.text for piece in scrub(raw, redactor())]


@given(st.lists(st.integers(0, len(TEXT.encode())), max_size=8))
def test_a_secret_that_reads_cut_is_removed(cuts: list[int]) -> None:
    raw = TEXT.encode()
    edges = [0, *sorted(cuts), len(raw)]
    pieces = [raw[a:b] for a, b in pairwise(edges)]
    shown = texts(*pieces)
    assert len(shown) == len(pieces)
    assert "".join(shown) == SHOWN


@pytest.mark.parametrize("form", sorted(forms(KEY)))
def test_every_form_of_a_secret_is_removed(form: bytes) -> None:
    assert texts(b"a " + form + b" z") == [f"a {MARK} z"]


def test_streams_are_read_apart() -> None:
    """Two answers may come at the same time."""
    half = len(KEY) // 2
    raw = [
        RawPiece(0, Hop.FROM_UPSTREAM, 1, KEY[:half].encode()),
        RawPiece(1, Hop.FROM_UPSTREAM, 2, b"in between"),
        RawPiece(2, Hop.FROM_UPSTREAM, 1, KEY[half:].encode()),
    ]
    assert [p.text for p in scrub(raw, redactor())] == [MARK, "in between", ""]


def test_only_harmless_headers_keep_their_values() -> None:
    head = Head(
        f"POST https://user:pass@api.example/v1/chat?api-version=2&key={KEY}#frag",
        (
            ("Authorization", f"Bearer {KEY}"),
            ("x-api-key", "short"),
            ("Cookie", "a=b"),
            ("X-Whatever", "private"),
            ("Content-Type", "application/json"),
            ("User-Agent", f"agent {KEY}"),
            ("x-ratelimit-remaining-tokens", "7"),
        ),
    )
    [piece] = scrub([RawPiece(0, Hop.TO_UPSTREAM, 1, head)], redactor())
    assert piece.head == Head(
        f"POST https://{MARK}@api.example/v1/chat?api-version={MARK}&key={MARK}",
        (
            ("Authorization", MARK),
            ("x-api-key", MARK),
            ("Cookie", MARK),
            ("X-Whatever", MARK),
            ("Content-Type", "application/json"),
            ("User-Agent", f"agent {MARK}"),
            ("x-ratelimit-remaining-tokens", "7"),
        ),
    )
    bare = RawPiece(0, Hop.TO_UPSTREAM, 1, Head("GET https://api.example/v1#frag", ()))
    assert [piece.head for piece in scrub([bare], redactor())] == [
        Head("GET https://api.example/v1", ())
    ]


def test_a_compressed_answer_is_read_decompressed() -> None:
    head = Head("200", (("Content-Encoding", "gzip"),))
    raw = gzip.compress(TEXT.encode())
    shown = texts(head, raw[:20], raw[20:], hop=Hop.FROM_UPSTREAM)
    assert "".join(shown) == SHOWN


@pytest.mark.parametrize(
    ("coding", "raw"),
    [
        ("gzip", b"no gzip " + KEY.encode()),
        ("br", KEY.encode()),
        ("", KEY.encode("utf-16")),
        ("", b"\xff\xfe" * 50 + KEY.encode()),
    ],
)
def test_what_cannot_be_read_is_counted_only(coding: str, raw: bytes) -> None:
    head = Head("200", (("content-encoding", coding),))
    pieces = [
        RawPiece(0, Hop.FROM_UPSTREAM, 1, head),
        RawPiece(1, Hop.FROM_UPSTREAM, 1, raw),
    ]
    _, piece = scrub(pieces, redactor())
    assert (piece.text, piece.left_out) == ("", len(raw))


@pytest.mark.parametrize("size", [3, 20, len(KEY) - 1])
def test_the_beginning_of_a_secret_before_a_gap_is_removed(size: int) -> None:
    shown = texts(b"x " * 5000 + KEY[:size].encode(), 1000)
    assert KEY[:3] not in "".join(shown)
    assert shown[0].startswith("x x ")


def hide(text: str, *, fragments: bool = False) -> str:
    shown, at = [], 0
    for span in find_spans(text, redactor().find_spans, fragments=fragments):
        assert at <= span.start < span.end
        shown += [text[at : span.start], span.replacement]
        at = span.end
    return "".join(shown) + text[at:]


@given(st.integers(0, 400_000), st.sampled_from([KEY, "sk-" + "a1B2" * 8]))
def test_a_secret_is_found_wherever_it_stands(before: int, secret: str) -> None:
    text = "x " * (before // 2) + secret + " y" * 50_000
    assert hide(text) == text.replace(secret, MARK)


@given(st.lists(st.integers(1, len(KEY) - 1), max_size=6, unique=True))
def test_a_secret_in_fragments_of_one_field_is_found(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(KEY)]
    parts = [KEY[a:b] for a, b in pairwise(edges)]
    lines = [
        "data: " + json.dumps({"id": "c", "choices": [{"delta": {"content": part}}]})
        for part in ("Your key ", *parts, " is it.")
    ]
    shown = hide("\n\n".join(lines), fragments=True)
    values = [
        json.loads(line[6:])["choices"][0]["delta"]["content"]
        for line in shown.split("\n\n")
    ]
    assert "".join(values) == f"Your key {MARK * len(parts)} is it."


def test_long_base64_is_counted_and_short_base64_stays() -> None:
    long, short = "QUJD" * 100_000, "QUJD" * (LONGEST_BASE64 // 4 - 1)
    text = json.dumps({"image": long, "hash": short})
    expected = json.dumps({"image": "[base64 of 400000 characters]", "hash": short})
    assert hide(text) == expected


@pytest.mark.parametrize("size", range(8, len(KEY)))
def test_a_secret_that_the_end_cuts_is_found(size: int) -> None:
    assert hide(f"it is {KEY[:size]}") == f"it is {MARK}"


def test_a_text_without_secrets_stays() -> None:
    text = json.dumps({"text": "def f(key): return key"}) * 5000
    assert hide(text, fragments=True) == text


@pytest.mark.parametrize("unit", ["a" * 1000 + " ", "key=", "sk-", "eyJ.", "://"])
@pytest.mark.slow
def test_the_search_takes_time_in_proportion(unit: str) -> None:
    text = unit * (80_000 // len(unit))
    find = redactor().find_spans
    check_linear(lambda n: find_spans(text * n, find, fragments=False), 1)


@given(st.text(alphabet='{}[]":,\\a\n'))
def test_broken_json_ends_and_stays_within_the_text(text: str) -> None:
    for string in find_strings(text):
        assert 0 <= string.start <= string.end <= len(text)


@pytest.mark.parametrize("unit", ["{", '["', '"\\', '{"a":', "\n", ' "a" '])
@pytest.mark.slow
def test_the_time_grows_with_the_length(unit: str) -> None:
    check_linear(lambda size: list(find_strings(unit * size)), 8_000)


@pytest.mark.parametrize("letter", ["B", "\\\\"])
def test_a_long_string_takes_no_memory_for_each_letter(letter: str) -> None:
    text = '{"a":"' + letter * 300_000 + '"}'
    tracemalloc.start()
    try:
        found = [string.end - string.start for string in find_strings(text)]
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert found == [1, len(letter) * 300_000]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"message": "Hi, \\"Bob\\"!\\n"}', '{"message": "xx, \\"xxx\\"x\\n"}'),
        ('{"role": "user", "n": 42}', '{"role": "user", "n": 11}'),
        ('{"input_tokens": 42, "ok": true}', '{"input_tokens": 42, "ok": true}'),
        ('{"src/my file": 1}', '{"xxxxxx xxxx": 1}'),
        ('{"input": {"type": "Bob"}, "type": "x"}',
         '{"input": {"xxxx": "xxx"}, "type": "x"}'),
        ('data: {"type": "ping"}\n\ndata: [DONE]\n',
         'data: {"type": "ping"}\n\ndata: [DONE]\n'),
        ("event: message_stop\ndata: {}\n", "event: message_stop\ndata: {}\n"),
        ("Bob's number is 555", "xxxxx xxxxxx xx 111"),
        ('{"a": "\\u00e4\\\\x"}', '{"a": "xxxxxx\\\\x"}'),
        ('{"arguments": "{\\"path\\": \\"a.py\\"}"}',
         '{"arguments": "{\\"xxxx\\": \\"xxxx\\"}"}'),
        ('{"text": "[redacted]"}', '{"text": "[redacted]"}'),
        ('{"cut": "in the mid', '{"cut": "xx xxx xxx'),
        (": comment of Bob", ": xxxxxxx xx xxx"),
    ],
)  # fmt: skip
def test_words_and_numbers_are_hidden_and_the_protocols_own_stay(
    text: str, shown: str
) -> None:
    assert hide_text(text) == shown


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": {"b": "x"}}', [(("a", "b"), "x")]),
        ('{"a": [{"b": "x"}, "y"]}', [(("a", "b"), "x"), (("a",), "y")]),
        ('{"a":"x"}\n{"b":"y"}\n', [(("a",), "x"), (("b",), "y")]),
        ('data: {"a":"x"}\n\ndata: {"b":"y"}', [(("a",), "x"), (("b",), "y")]),
        ('data: {"a":["x\ndata: {"b":"y"}', [(("a",), "x"), (("b",), "y")]),
        ('{"a":"x\\"y"}', [(("a",), 'x\\"y')]),
        ("no JSON", []),
        ("]}]}:,,{", []),
    ],
)
def test_strings_have_the_keys_above_them(
    text: str, expected: list[tuple[tuple[str, ...], str]]
) -> None:
    found = [
        (s.path, text[s.start : s.end]) for s in find_strings(text) if not s.is_key
    ]
    assert found == expected
