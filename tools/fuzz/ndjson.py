"""Values and events to lines, read back as clients read them."""

import json
from typing import Any

from byok.core.chat import ChatRequest, Origin, ProviderData, ToolCall
from byok.core.errors import UpstreamGarbled
from byok.core.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallPlace,
    Usage,
)
from byok.core.wire.json_lines import encode_line
from byok.protocols.augment.chat_reply import ChatReply
from byok.protocols.augment.reply_job import ReplyFacts
from tests.fakes.values import cut
from tools.fuzz.target import Draw, Target

_TEXTS = ("", "a", "\n", "\r\n", "\u2028", "\u2029", "\x85", "\x0b", "\x1c", "\ud83d")
_MAX_DEPTH = 40


def check(data: bytes) -> None:
    """Check the lines of one stream of values, or of one answer."""
    draw = Draw(data)
    if draw.one_in(2):
        _check_answer(draw)
    else:
        values = [_object(draw, 0) for _ in range(1 + draw.upto(3))]
        assert _read(b"".join(map(encode_line, values)), draw) == [
            _plain(value) for value in values
        ]


def _check_answer(draw: Draw) -> None:
    """Check that a stream of events ends with exactly one line with a stop reason."""
    reply = ChatReply(
        ChatRequest((), client_tool_use_start=draw.one_in(2), silent=draw.one_in(4)),
        ReplyFacts("0" * 16),
    )
    lines: list[bytes] = []
    failed = draw.one_in(4)
    text = ""
    while not draw.empty:
        event = _event(draw)
        text += event.text if isinstance(event, TextDelta) else ""
        lines += map(encode_line, reply.feed(event))
    end = reply.fail(UpstreamGarbled(_text(draw))) if failed else reply.flush()
    lines += map(encode_line, end)
    read = _read(b"".join(lines), Draw(b""))
    stops = [line["stop_reason"] for line in read]
    assert stops[-1] is not None
    assert stops[:-1] == [None] * (len(stops) - 1)
    assert ("error" in read[-1]) >= failed
    texts = "".join(line["text"] for line in read)
    assert texts.startswith("".join(map(_plain, [text])) if _whole(text) else "")


def _event(draw: Draw) -> StreamEvent:
    match draw.upto(8):
        case 0:
            return TextDelta(_text(draw))
        case 1:
            return ThinkingDelta(_text(draw))
        case 2:
            return ToolCall(_text(draw), _text(draw), "{}")
        case 3:
            return Usage(draw.upto(9), draw.upto(9), draw.upto(9), draw.upto(9))
        case 4:
            return Finish(draw.of(tuple(FinishReason)))
        case 5:
            return Notice(_text(draw), "code")
        case 6:
            return ToolCallPlace(_text(draw))
        case 7:
            data = {"signature": _text(draw)}
            return ThinkingDelta(_text(draw), ProviderData(Origin("d", "u", "m"), data))
        case _:
            return ToolCallDelta()


def _read(stream: bytes, draw: Draw) -> list[Any]:
    """Split lines in three ways, which must agree."""
    plain = [json.loads(line) for line in stream.split(b"\n")[:-1]]
    text = [json.loads(line) for line in stream.decode().splitlines()]
    partial, incremental = b"", []
    for piece in cut(stream, draw.places(5)):
        *whole, partial = (partial + piece).split(b"\n")
        incremental += [json.loads(line) for line in whole]
    assert partial == b""
    assert plain == text == incremental
    assert b"" not in stream.splitlines()
    assert stream.count(b"\n") == len(stream.splitlines()) == len(plain)
    return plain


def _object(draw: Draw, depth: int) -> dict[str, Any]:
    return {_text(draw): _value(draw, depth + 1) for _ in range(draw.upto(3))}


def _value(draw: Draw, depth: int) -> Any:
    match draw.upto(7) if depth < _MAX_DEPTH else 0:
        case 0:
            return None
        case 1:
            return draw.one_in(2)
        case 2:
            return int.from_bytes(draw.raw(10), "big", signed=True)
        case 3:
            return draw.upto(999) / (1 + draw.upto(99))
        case 4:
            return _object(draw, depth)
        case 5:
            return [_value(draw, depth + 1) for _ in range(draw.upto(3))]
        case _:
            return _text(draw)


def _text(draw: Draw) -> str:
    return "".join(
        draw.of(_TEXTS) if draw.one_in(2) else draw.raw(8).decode("utf-8", "replace")
        for _ in range(draw.upto(3))
    )


def _plain(value: Any) -> Any:
    """Return the value with U+FFFD for every lone surrogate."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_plain(key): _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case _:
            return value


def _whole(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


TARGET = Target(
    check,
    seeds=[bytes(range(n, 256, 7)) + bytes([n]) * 9 for n in range(12)],
    words=[text.encode("utf-8", "surrogatepass") for text in _TEXTS if text],
)
