"""Bytes of an answer to events, the same for any slicing and as a slow reader says.

The reader here follows the WHATWG rules line by line, plus the tolerances that
`core/wire/sse.py` states. The fast paths of the answer's reader are compared with its
slow path.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from byok.core.errors import UpstreamError
from byok.core.events import Finish, StreamEvent, TextDelta, ThinkingDelta
from byok.core.stage import Stage, chain
from byok.core.wire import sse
from byok.core.wire.inflate import Inflate
from byok.core.wire.json_body import parse_json
from byok.core.wire.sse import ServerSentEvent, SSEDecoder
from byok.dialects.openai_chat.answer import OpenAIAnswer
from tests.fakes.clock import check_linear
from tests.fakes.values import cut, singles
from tools.fuzz.target import Draw, Target

_BOM = b"\xef\xbb\xbf"
_SMALL = 64
_TOO_LARGE = "upstream_event_too_large"


def reference(stream: bytes) -> tuple[list[ServerSentEvent], str]:
    """Read a whole stream; return its events, and the code of the failure or ""."""
    body = stream.removeprefix(_BOM)
    start = body.lstrip(b" \t\r\n")[:1]
    if start == b"<":
        return [], "upstream_not_json"
    if start in (b"{", b"["):
        return [ServerSentEvent(body.strip())], ""
    return [read for block in blocks(body) if (read := _event(block))], ""


def blocks(body: bytes) -> Iterator[list[bytes]]:
    """Yield the lines between two blank lines; the end of the stream counts as one."""
    block: list[bytes] = []
    lines = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    for line in [*lines, b""]:
        if line:
            block.append(line)
        else:
            yield block
            block = []


def _event(block: list[bytes]) -> ServerSentEvent | None:
    data: list[bytes] = []
    name = ""
    for line in block:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field in (b"data", b"error"):
            data.append(value)
        if field == b"error":
            name = "error"
        if field == b"event":
            name = value.decode("utf-8", "replace")
    return ServerSentEvent(b"\n".join(data), name) if data else None


def run(stage: Stage[Any, Any], slices: Iterable[Any]) -> tuple[list[Any], str]:
    """Return a stage's output for the slices, and the code of its failure or ""."""
    output: list[Any] = []
    try:
        for piece in slices:
            output += stage.feed(piece)
        output += stage.flush()
    except UpstreamError as error:
        return output, error.code
    return output, ""


def check(data: bytes) -> None:
    """Check one stream in one of four ways; the first byte chooses the way."""
    draw = Draw(data)
    way, places = draw.upto(5), draw.places(5)
    stream = draw.rest()
    match way:
        case 0 | 1:
            _check_events(stream, places)
        case 2 | 3:
            _check_answer(stream, places)
        case 4:
            with _small_limits():
                _check_limits(stream, places)
        case _:
            _check_inflate(stream, places)


def _slicings(stream: bytes, places: list[int]) -> Iterator[list[bytes]]:
    yield [stream]
    yield cut(stream, places)
    if len(stream) < 600:
        yield singles(stream)


def _check_events(stream: bytes, places: list[int]) -> None:
    expected = reference(stream)
    for slices in _slicings(stream, places):
        assert run(SSEDecoder(), slices) == expected


def _check_answer(stream: bytes, places: list[int]) -> None:
    events, failure = reference(stream)
    slow_path = run(OpenAIAnswer({}), map(_avoid_fast_path, events))
    expected = (_merge(slow_path[0]), failure or slow_path[1])
    for slices in _slicings(stream, places):
        output, code = run(chain(SSEDecoder(), OpenAIAnswer({})), slices)
        assert (_merge(output), code) == expected
        ends = [event for event in output if isinstance(event, Finish)]
        assert code or output[-1:] == ends


def _avoid_fast_path(event: ServerSentEvent) -> ServerSentEvent:
    """Add an empty second choice, so that the reader cannot use its fast path."""
    try:
        chunk = parse_json(event.data.strip(), keep_halves=True)
        if isinstance(chunk, dict) and isinstance(chunk.get("choices"), list):
            chunk["choices"].append({"index": 1})
            return ServerSentEvent(json.dumps(chunk).encode(), event.event)
    except (ValueError, RecursionError):
        pass
    return event


def _merge(events: list[StreamEvent]) -> list[StreamEvent]:
    """Merge successive deltas of one type, and drop empty ones."""
    merged: list[StreamEvent] = []
    for kind, group in groupby(events, type):
        if kind in (TextDelta, ThinkingDelta):
            text = "".join(getattr(event, "text", "") for event in group)
            merged += [kind(text)] if text else []
        else:
            merged += group
    return merged


@contextmanager
def _small_limits() -> Iterator[None]:
    limits = sse.MAX_EVENT_BYTES, sse.MAX_DOCUMENT_BYTES
    sse.MAX_EVENT_BYTES, sse.MAX_DOCUMENT_BYTES = _SMALL, 2 * _SMALL
    try:
        yield
    finally:
        sse.MAX_EVENT_BYTES, sse.MAX_DOCUMENT_BYTES = limits


def _check_limits(stream: bytes, places: list[int]) -> None:
    events, failure = reference(stream)
    body = stream.removeprefix(_BOM)
    document = body.lstrip(b" \t\r\n")[:1] in (b"{", b"[")
    sizes = [sum(len(line) + 2 for line in block) for block in blocks(body)]
    for slices in (*_slicings(stream, places), _slice(stream, 16)):
        output, code = run(SSEDecoder(), slices)
        assert all(len(event.data) <= 2 * _SMALL for event in output)
        assert output == events[: len(output)]
        if code == _TOO_LARGE:
            small = max(sizes) <= 16 and max(map(len, slices)) <= 16
            assert document or not small, "refused though every event is small"
            assert not document or len(stream) > 2 * _SMALL
        else:
            assert (output, code) == (events, failure)


def _slice(stream: bytes, size: int) -> list[bytes]:
    return [stream[start : start + size] for start in range(0, len(stream), size)]


def _check_inflate(stream: bytes, places: list[int]) -> None:
    half = len(stream) // 2
    members = gzip.compress(stream[:half], 1) + gzip.compress(stream[half:], 1)
    for coding, packed in (("gzip", members), ("deflate", zlib.compress(stream))):
        for slices in _slicings(packed, places):
            output, code = run(Inflate(coding), slices)
            assert (b"".join(output), code) == (stream, "")
    damaged = members[:half] + stream + members[half:]
    results = [run(Inflate("gzip"), s) for s in _slicings(damaged, places)]
    assert len({code for _, code in results}) == 1
    (longest, *_) = sorted((b"".join(output) for output, _ in results), key=len)[::-1]
    assert all(longest.startswith(b"".join(output)) for output, _ in results)


def check_time(data: bytes) -> None:
    """Check that twice the stream takes twice the time, in small and large slices."""
    piece = data[:200] or b"data: a\n\n"
    for step in (3, 2000, 10**6):

        def decode(size: int, step: int = step) -> None:
            stream = b"data: x\n" + piece * (size // len(piece))
            run(chain(SSEDecoder(), OpenAIAnswer({})), _slice(stream, step))

        check_linear(decode, 40_000 if step < 10 else 400_000)


def _say(**delta: Any) -> bytes:
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


_CALL = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
_END = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
_STREAMS = (
    b"data: a\n\ndata: b\r\n\r\n: c\nevent: x\ndata\n\rid: 1\n\n",
    _say(content="<think>hm</think>Hi") + _say(content="\ud83d") + _END,
    _say(content="a") + _say(content="b") + _END,
    _say(reasoning_content="hm") + _say(tool_calls=[_CALL]) + _END,
    b'error: {"message": "no"}\n\n',
    b'{"choices":[{"message":{"content":"whole"},"finish_reason":"length"}]}',
    b'data: {"choices":[{"delta":{"content":[{"text":"a"}]}}],"usage":'
    b'{"prompt_tokens":1,"completion_tokens":2}}\n\n' + _END,
    _BOM + b"\r\n data: x\n\n<",
)
TARGET = Target(
    check,
    seeds=[bytes([way, 1, 0, 9]) + s for way in (0, 2, 4, 5) for s in _STREAMS],
    words=[
        *(b"data: ", b"data:", b"\n\n", b"\r\n\r\n", b"\r", b"event: ", b"error: "),
        *(_BOM, b"[DONE]", b"data: [DONE]\n\n", b'{"choices":[', b'{"delta":{'),
        *(b'"content":"', b'"finish_reason":"stop"', b'"length"', b'"tool_calls":['),
        *(b'"function":{', b'"arguments":', b'"name":', b'"id":', b'"index":0'),
        *(b'"usage":{', b'"x_groq":', b'"error":', b'"message":', b'"reasoning":"'),
        *(
            b"\\ud83d",
            b"\\ude00",
            b"<think>",
            b"</think>",
            b"null",
            b"true",
            b"}]}\n\n",
        ),
        *(b'"native_finish_reason":', b'"refusal":"', b'"prompt_tokens":1', b'"text":'),
    ],
    slow=check_time,
)
