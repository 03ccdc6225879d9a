"""Pieces lose their secrets before they are written."""

import gzip
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.record import Head, Hop
from byok.core.redact import MARK, Redactor
from byok.features.capture.scrub import RawPiece, scrub
from tests.fakes.secret_forms import forms

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
    ids=["damaged", "unknown", "wide", "binary"],
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
