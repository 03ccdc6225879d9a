"""Raw bytes at a running daemon: JSON of byok's shape, or a closed connection.

The same bytes go to aiohttp's two parsers, the compiled one and the one in Python;
where one accepts what the other refuses, that is reported and no failure.
"""

import asyncio
import json
import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from aiohttp import http_parser
from aiohttp.base_protocol import BaseProtocol

from byok.server.http.deadlines import Timing
from tests.fakes.daemon import Editor, running
from tests.fakes.raw import filled
from tools.fuzz.target import Draw, Target

_TIMING = Timing(head=0.02, body_gap=0.02, grace=0.1, last_words=0.2)
_TIMEOUT_SECONDS = 5.0
_SILENCE_SECONDS = 0.05
_HEALTH_EVERY = 50
_TRIES = 25
_END = (b"GET /health HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n", b"")
_MAX_DIFFERENCES = 40


class _Records(logging.Handler):
    """Collects records that must not occur: tracebacks and errors."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.bad.append(self.format(record))


class _Daemon:
    """A daemon on this thread's loop; it runs while an input is checked."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._running = running({}, upstream="demo", timing=_TIMING)
        self._editor: Editor | None = None
        self._records = _Records()
        self._exchanges = 0

    def open(self) -> None:
        root = logging.getLogger()
        root.addHandler(self._records)
        root.setLevel(logging.INFO)
        self._editor = self.loop.run_until_complete(self._running.__aenter__())

    def close(self) -> None:
        self.loop.run_until_complete(self._running.__aexit__(None, None, None))
        self.loop.close()
        logging.getLogger().removeHandler(self._records)

    def check(self, data: bytes, cut: int) -> None:
        assert self._editor is not None
        self.loop.run_until_complete(self._exchange(self._editor, data, cut))
        if self._records.bad:
            messages, self._records.bad = self._records.bad, []
            raise AssertionError(f"in the log: {messages[0]}")

    async def _exchange(self, editor: Editor, data: bytes, cut: int) -> None:
        port = editor.daemon.port
        request = _fill_in(data, port, editor.token)
        answer = await _send(port, request, cut)
        check_answers(answer, request)
        self._exchanges += 1
        if self._exchanges % _HEALTH_EVERY == 1:
            health = _END[0].replace(b"HOST", b"127.0.0.1:%d" % port)
            # The deadline of a head is short here, and the machine may be busy.
            for _ in range(_TRIES):
                if b'{"status":"ok"}' in await _send(port, health, 0):
                    return
            raise AssertionError("the daemon does not answer any more")


def _fill_in(data: bytes, port: int, token: str) -> bytes:
    """Replace the placeholders in heads by the daemon's values."""
    data = filled(data, port, token)
    data = data.replace(b"HOST", b"127.0.0.1:%d" % port)
    return data.replace(b"TOKEN", token.encode())


async def _send(port: int, data: bytes, cut: int) -> bytes:
    """Send bytes in one or two pieces, and return the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            for piece in (data[:cut], data[cut:]):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            return await _read(reader)
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Read to the end; a persistent connection ends with silence after the answer."""
    answer = b""
    timeout = _SILENCE_SECONDS
    while True:
        try:
            async with asyncio.timeout(timeout):
                piece = await reader.read(2**16)
        except TimeoutError:
            if timeout != _SILENCE_SECONDS or _is_whole(answer):
                return answer
            timeout = _TIMEOUT_SECONDS / 2  # half an answer: the machine may be busy
            continue
        if not piece:
            return answer
        answer += piece


def _is_whole(answer: bytes) -> bool:
    try:
        check_answers(answer, b"")
    except (AssertionError, ValueError, KeyError):
        return False
    return True


def check_answers(answer: bytes, sent: bytes) -> None:
    """Check that bytes are complete answers of byok, one after the other."""
    while answer:
        head, gap, remaining = answer.partition(b"\r\n\r\n")
        assert gap, f"half a head: {head[:80]!r}"
        status, *lines = head.decode("latin-1").split("\r\n")
        if status == "HTTP/1.1 100 Continue":
            answer = remaining
            continue
        # aiohttp answers in the client's version, and invalid requests in 1.0
        assert re.match(r"HTTP/(1\.1|\d\.\d 4)", status), status
        fields = {
            n.lower(): v.strip() for n, _, v in (li.partition(":") for li in lines)
        }
        code = int(status.split()[1])
        assert code < 500 or code == 503, status
        if fields.get("transfer-encoding") == "chunked":
            body, answer = _decode_chunks(remaining)
        else:
            size = int(fields["content-length"])
            body, answer = remaining[:size], remaining[size:]
            if b"HEAD" in sent and (
                not body or body.startswith((b"HTTP/1.1 ", b"HTTP/1.0 "))
            ):
                answer = remaining
                continue
            assert len(body) == size, "half an answer"
        _check_body(code, fields, body)


def _check_body(code: int, fields: dict[str, str], body: bytes) -> None:
    assert fields["server"] == "byok"
    if code < 400:
        for line in body.split(b"\n")[:-1]:
            assert isinstance(json.loads(line), dict)
        return
    assert fields["content-type"] == "application/json"
    value = json.loads(body)
    assert set(value) in ({"error", "message"}, {"error"})
    assert {"code", "message"} <= set(value["error"])
    assert "Traceback" not in value["error"]["message"]


def _decode_chunks(data: bytes) -> tuple[bytes, bytes]:
    """Return the body of chunked data, and the bytes behind it."""
    body = b""
    while True:
        line, _, data = data.partition(b"\r\n")
        size = int(line, 16)
        body += data[:size]
        assert data[size : size + 2] == b"\r\n", "half a chunk"
        data = data[size + 2 :]
        if not size:
            return body, data


class _DummyProtocol(BaseProtocol):
    """A protocol without a connection, which the parsers need."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._reading_paused = False

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self, resume_parser: bool = True) -> None:
        self._reading_paused = False


_PARSERS: dict[str, Any] = {
    "C": http_parser.HttpRequestParser,
    "Python": http_parser.HttpRequestParserPy,
}
_verdicts: Counter[str] = Counter()
_differences: dict[str, bytes] = {}


def compare(data: bytes, loop: asyncio.AbstractEventLoop) -> None:
    """Record whether both parsers give the same verdict on some bytes."""
    compiled, python = (_verdict(make, data, loop) for make in _PARSERS.values())
    both_refuse = compiled[:1] == python[:1] == ["refuses"]
    if not compiled or not python or compiled == python or both_refuse:
        _verdicts["same"] += 1
        return
    _verdicts["different"] += 1
    if compiled[0] == python[0]:
        parts = zip(("count", *_COMPARED), compiled[1:], python[1:], strict=False)
        key = "both accept, another " + next(name for name, a, b in parts if a != b)
    else:
        verdicts = (" ".join(map(str, verdict[:2])) for verdict in (compiled, python))
        key = "C {}, Python {}".format(*verdicts)
    previous = _differences.get(key)
    is_full = len(_differences) >= _MAX_DIFFERENCES
    if (previous is None and not is_full) or (previous and len(data) < len(previous)):
        _differences[key] = data


_COMPARED = ("method", "path", "headers", "close", "chunked", "upgrade", "body")


def _verdict(make: Any, data: bytes, loop: asyncio.AbstractEventLoop) -> list[Any]:
    """Return ["refuses", error], ["accepts", *facts], or [] if incomplete."""
    parser = make(
        _DummyProtocol(loop),
        loop,
        2**16,
        max_line_size=8190,
        max_field_size=8190,
        max_headers=64,
        auto_decompress=False,
    )
    try:
        requests, upgraded, _ = parser.feed_data(data)
    except Exception as error:
        return ["refuses", type(error).__name__]
    if not requests:
        return []
    messages = [message for message, _ in requests]
    return [
        "accepts",
        len(requests),
        [m.method for m in messages],
        [m.path for m in messages],
        [[(k.lower(), v) for k, v in m.headers.items()] for m in messages],
        [m.should_close for m in messages],
        [m.chunked for m in messages],
        upgraded,
        [type(payload.exception()).__name__ for _, payload in requests],
    ]


_daemon: list[_Daemon] = []


@contextmanager
def opened() -> Iterator[None]:
    """Run a daemon while inputs are checked."""
    with ExitStack() as stack:
        daemon = _Daemon()
        daemon.open()
        stack.callback(daemon.close)
        _daemon.append(daemon)
        stack.callback(_daemon.clear)
        yield


def check(data: bytes) -> None:
    """Check bytes in front of a last good request, or without it."""
    draw = Draw(data)
    end = draw.of((_END[0], _END[0], _END[0], _END[1]))
    cut = draw.upto(255)
    raw = draw.rest()
    compare(raw, _daemon[0].loop)
    _daemon[0].check(raw + end, cut)


def _facts() -> dict[str, Any]:
    return {
        "parsers": dict(_verdicts),
        **{key: repr(value[:300]) for key, value in _differences.items()},
    }


_HEAD = (
    b"Host: HOST\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\n"
)
TARGET = Target(
    check,
    seeds=[
        b"\x00\x00" + seed
        for seed in (
            b"POST /chat HTTP/1.1\r\n" + _HEAD + b"Content-Length: 2\r\n\r\n{}",
            b"POST /chat-stream HTTP/1.1\r\n"
            + _HEAD
            + b'Content-Length: 16\r\n\r\n{"message":"hi"}',
            b"POST /find-missing HTTP/1.1\r\n"
            + _HEAD
            + b"Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nX: y\r\n\r\n",
            b"GET /v1/models HTTP/1.1\r\n" + _HEAD + b"\r\n",
            b"POST /v1/embeddings HTTP/1.1\r\n"
            + _HEAD
            + b"Content-Length: 2\r\n\r\n{}",
            b"HEAD /health HTTP/1.1\r\nHost: HOST\r\n\r\n",
            b"POST /get-models HTTP/1.1\r\n"
            + _HEAD
            + b"Expect: 100-continue\r\nContent-Length: 0\r\n\r\n",
            b"OPTIONS * HTTP/1.1\r\nHost: HOST\r\nOrigin: http://x\r\n\r\n",
            b"GET /x HTTP/1.1\r\nHost: HOST\r\nUpgrade: websocket\r\n"
            b"Connection: upgrade\r\n\r\n",
        )
    ],
    words=[
        *(
            b"HTTP/1.1",
            b"HTTP/1.0",
            b"\r\n",
            b"\r\n\r\n",
            b"\n",
            b"\r",
            b"Host: HOST\r\n",
        ),
        *(b"Authorization: Bearer TOKEN\r\n", b"Content-Length: ", b"0\r\n\r\n", b"\t"),
        *(
            b"Transfer-Encoding: chunked\r\n",
            b"Connection: close\r\n",
            b"\x00",
            b"\x80",
        ),
        *(
            b"Content-Type: application/json\r\n",
            b"Expect: 100-continue\r\n",
            b": ",
            b"+",
        ),
        *(b"GET ", b"POST ", b"CONNECT ", b"PRI * HTTP/2.0", b"%2e", b"//", b"/chat"),
        *(b"Content-Encoding: gzip\r\n", b"Upgrade: websocket\r\n", b"Origin: x\r\n"),
        *(b"/v1/chat/completions", b"/health", b"/get-models", b"?", b"#", b"http://"),
    ],
    opened=opened,
    facts=_facts,
)
