"""Server-sent events as clients read them."""

from byok.core.wire.sse import (
    COMMENT,
    DONE,
    ServerSentEvent,
    SSEDecoder,
    encode_data,
    encode_named,
)


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
