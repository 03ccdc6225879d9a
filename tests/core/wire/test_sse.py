"""Server-sent events: every line end, every slicing, what servers add, what is sent."""

from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from byok.core.errors import UpstreamGarbled
from byok.core.stage import drain
from byok.core.wire.sse import (
    COMMENT,
    DONE,
    MAX_DOCUMENT_BYTES,
    MAX_EVENT_BYTES,
    ServerSentEvent,
    SSEDecoder,
    encode_data,
    encode_named,
)
from tests.fakes.values import singles
from tools.fuzz.sse import reference, run

Event = ServerSentEvent
BOM = b"\xef\xbb\xbf"


def read(pieces: Iterable[bytes]) -> list[ServerSentEvent]:
    return list(drain(SSEDecoder(), pieces))


STREAMS: dict[str, tuple[bytes, list[ServerSentEvent]]] = {
    "nothing": (b"", []),
    "only blank lines": (b"\n\r\n\r \n", []),
    "LF": (b"data: a\n\ndata: b\n\n", [Event(b"a"), Event(b"b")]),
    "CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", [Event(b"a"), Event(b"b")]),
    "CR": (b"data: a\r\rdata: b\r\r", [Event(b"a"), Event(b"b")]),
    "mixed line ends": (
        b"data: a\r\n\ndata: b\r\r\ndata: c\n\rdata: d\r\n\rdata: e\n\n",
        [Event(b"a"), Event(b"b"), Event(b"c"), Event(b"d"), Event(b"e")],
    ),
    "no line end but LF, CRLF, CR": (
        "data: a\u2028b\u2029c\u0085d\x0be\x0cf\n\n".encode(),
        [Event("a\u2028b\u2029c\u0085d\x0be\x0cf".encode())],
    ),
    "BOM": (BOM + b"data: a\n\n", [Event(b"a")]),
    "a second BOM is text": (BOM + BOM + b"data: a\n\ndata: b\n\n", [Event(b"b")]),
    "a BOM behind a blank line is text": (
        b"\n" + BOM + b"data: a\n\ndata: b\n\n",
        [Event(b"b")],
    ),
    "a second BOM behind a blank": (
        BOM + b" \r\n" + BOM + b"data: a\n\ndata: b\n\n",
        [Event(b"b")],
    ),
    "no document behind a BOM that is none": (b"\r" + BOM + b'{"a": 1}', []),
    "blank lines before the first event": (b"\r\n\ndata: a\n\n", [Event(b"a")]),
    "no space after the colon": (b"data:a\n\n", [Event(b"a")]),
    "only one space is dropped": (b"data:  a \n\n", [Event(b" a ")]),
    "a colon in the data": (b"data: a: b\n\n", [Event(b"a: b")]),
    "several data lines": (b"data: a\ndata:\ndata: b\n\n", [Event(b"a\n\nb")]),
    "a data line without colon": (b"data: a\ndata\ndata: b\n\n", [Event(b"a\n\nb")]),
    "a named event": (b"event: ping\ndata: a\n\n", [Event(b"a", "ping")]),
    "several named events": (
        b"event: a\ndata: 1\n\nevent: \xff\ndata: 2\n\nevent: c\n\ndata: 3\n\n",
        [Event(b"1", "a"), Event(b"2", "\ufffd"), Event(b"3")],
    ),
    "the name is for one event": (
        b"event:ping\ndata: a\n\ndata: b\n\n",
        [Event(b"a", "ping"), Event(b"b")],
    ),
    "a name without data": (b"event: ping\n\ndata: a\n\n", [Event(b"a")]),
    "id and retry": (b"id: 7\nretry: 3\ndata: a\nid: 8\n\n", [Event(b"a")]),
    "unknown fields": (b"x: y\n data: no\nDATA: no\ndata: a\n\n", [Event(b"a")]),
    "comments": (b": hi\n\n:\ndata: a\n: in between\ndata: b\n\n", [Event(b"a\nb")]),
    "a field named error": (
        b'data: a\n\nerror: {"message": "no"}\n\n',
        [Event(b"a"), Event(b'{"message": "no"}', "error")],
    ),
    "no last blank line": (b"data: a\n\ndata: b\n", [Event(b"a"), Event(b"b")]),
    "no last line end": (b"data: a\n\ndata: b", [Event(b"a"), Event(b"b")]),
    "no last line end, in CR": (b"data: a\r\rdata: b\r", [Event(b"a"), Event(b"b")]),
    "a JSON object": (b' {"a":\r\n\r\n1}\n', [Event(b'{"a":\r\n\r\n1}')]),
    "a JSON array": (b'[{"a": 1}]', [Event(b'[{"a": 1}]')]),
    "a JSON object after a BOM": (BOM + b'\n{"a": 1}', [Event(b'{"a": 1}')]),
}
TABLE = pytest.mark.parametrize(
    ("stream", "events"), list(STREAMS.values()), ids=list(STREAMS)
)


@TABLE
@pytest.mark.case("F13")
def test_sse_stream_cut_once_anywhere_gives_its_events(
    stream: bytes, events: list[ServerSentEvent]
) -> None:
    for place in range(len(stream) + 1):
        assert read([stream[:place], stream[place:]]) == events, place


TOKENS = st.sampled_from(
    [
        *(b"\n", b"\r", b"\r\n", b"data:", b"data", b"data: ", b"event: x", b"id: 1"),
        *(
            b"error:",
            b":",
            b" ",
            b"a",
            b"{",
            b"\xe2\x80\xa8",
            b"\xc2\x85",
            b"\xff",
            BOM,
        ),
    ]
)


SLICES = st.lists(
    TOKENS
    | st.sampled_from(
        [
            *(b"\n\n", b"data: a\n\n", b'data: {"b"', b"event: x\ndata: a\n\n"),
            b"event: \xff\ndata: b\n\nevent: y\ndata: c\n\n",
        ]
    ),
    min_size=1,
    max_size=5,
).map(b"".join)


@settings(max_examples=300)
@given(st.lists(SLICES, max_size=6))
@example([b"data: a\n\r", b"\n", b"\ndata: b"])
@pytest.mark.case("F13")
def test_sse_any_slicing_agrees_with_a_plain_reader(slices: list[bytes]) -> None:
    assert run(SSEDecoder(), slices) == reference(b"".join(slices))


@pytest.mark.parametrize(
    "page", [b"<!DOCTYPE html>", b"  \r\n<html>", BOM + b"<html>", b"<"]
)
def test_sse_web_page_is_refused(page: bytes) -> None:
    for pieces in ([page], singles(page)):
        with pytest.raises(UpstreamGarbled) as caught:
            read(pieces)
        assert caught.value.code == "upstream_not_json"
        assert caught.value.hint


LINE = b"data: " + b"x" * (2**20 - 6)  # one MiB


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param([LINE] * 4 + [b"x"], id="in one line of many reads"),
        pytest.param([LINE * 4 + b"x"], id="in one read"),
        pytest.param([LINE + b"\n"] * 4 + [b"id: 1\n"], id="in many lines"),
        pytest.param([b"data: a\n\n", b"x" * (MAX_EVENT_BYTES + 1)], id="as no field"),
    ],
)
@pytest.mark.case("F08")
def test_sse_event_above_the_limit_is_refused(stream: list[bytes]) -> None:
    with pytest.raises(UpstreamGarbled) as caught:
        read(stream)
    assert caught.value.code == "upstream_event_too_large"


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param([LINE, b"x" * (MAX_EVENT_BYTES - len(LINE))], id="just the limit"),
        pytest.param([LINE + b"\n\n"] * 6, id="many events"),
        pytest.param([b": " + LINE + b"\n"] * 6 + [b"data: a"], id="many comments"),
        [LINE + b"\n"] + [b"\n" + LINE + b"\n"] * 6,  # reads end before the blank
        [LINE + b"\r\n"] + [b"\r\n" + LINE + b"\r\n"] * 6,  # the same in CRLF
        [LINE + b"\n"] + [b"id: 1\n\n" + LINE + b"\n"] * 6,  # and in a field
    ],
)
def test_sse_stream_is_not_limited_in_length(stream: list[bytes]) -> None:
    assert read(stream)


@pytest.mark.case("F08")
def test_sse_document_above_its_limit_is_refused() -> None:
    piece = b"[" * 2**20
    with pytest.raises(UpstreamGarbled) as caught:
        read([piece] * (MAX_DOCUMENT_BYTES // len(piece)) + [b"["])
    assert caught.value.code == "upstream_event_too_large"


def test_sse_blank_bytes_before_the_first_event_are_not_kept() -> None:
    blanks = [b" " * 2**20] * 5 + [b" "] * 1000
    assert read([*blanks, b"\ndata: x\n\n"]) == [ServerSentEvent(b"x")]


# Events as byok writes them


def test_sse_writer_events_are_read_again() -> None:
    value = {"type": "a.b", "text": "é\u2028\n"}
    decoder = SSEDecoder()
    read = decoder.feed(encode_named(value) + encode_data(value) + encode_data(DONE))
    line = '{"type":"a.b","text":"é\\u2028\\n"}'.encode()
    assert read == [
        ServerSentEvent(line, "a.b"),
        ServerSentEvent(line),
        ServerSentEvent(b"[DONE]"),
    ]


def test_sse_writer_a_comment_is_no_event() -> None:
    assert encode_named(COMMENT) == encode_data(COMMENT) == b": byok\n\n"
    assert SSEDecoder().feed(b"data: 1\n\n" + encode_data(COMMENT)) == [
        ServerSentEvent(b"1")
    ]
