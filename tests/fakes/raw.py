"""A raw-socket HTTP client: sends any bytes, reads status, headers and body."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from tests.fakes.patience import PATIENCE

if TYPE_CHECKING:
    from tests.fakes.daemon import Editor


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """One HTTP answer exactly as it came; header names in lower case."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error object, "" for any other answer."""
        return str(self.json["error"]["code"]) if self.status >= 400 else ""

    def header(self, name: str) -> str:
        """Return a header that must not come twice, "" where it is absent."""
        found = [value for key, value in self.headers if key == name]
        assert len(found) < 2, f"{name} came {len(found)} times"
        return found[0] if found else ""


class RawConnection:
    """One connection to the daemon."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> Self:
        """Send bytes; a peer that stopped reading already is no failure."""
        with contextlib.suppress(ConnectionError):  # what it said is read all the same
            self._writer.write(data)
            await self._writer.drain()
        return self

    async def answer(self, patience: float = PATIENCE) -> RawAnswer:
        """Read the next answer to its end."""
        async with asyncio.timeout(patience):
            head = await self._reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            pairs = [line.partition(":")[::2] for line in lines[1:] if line]
            headers = [(name.strip().lower(), value.strip()) for name, value in pairs]
            answer = RawAnswer(int(lines[0].split()[1]), headers, b"")
            if answer.header("transfer-encoding") == "chunked":
                body = await self._chunks()
            else:
                body = await self._reader.readexactly(
                    int(answer.header("content-length") or 0)
                )
        return RawAnswer(answer.status, headers, body)

    async def line(self, patience: float = PATIENCE) -> bytes:
        """Read one line, whatever it is."""
        async with asyncio.timeout(patience):
            return await self._reader.readline()

    async def rest(self, patience: float = PATIENCE) -> bytes:
        """Read until the other side closes."""
        async with asyncio.timeout(patience):
            try:
                return await self._reader.read()
            except ConnectionResetError:
                return b""

    def abort(self) -> None:
        """Leave without a word."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close and wait until it is closed."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):  # the other side was faster
            await self._writer.wait_closed()

    async def _chunks(self) -> bytes:
        pieces: list[bytes] = []
        while size := int(await self._reader.readline(), 16):
            pieces.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)
        return b"".join(pieces)


@asynccontextmanager
async def connected(port: int, host: str = "127.0.0.1") -> AsyncIterator[RawConnection]:
    connection = RawConnection(*await asyncio.open_connection(host, port))
    try:
        yield connection
    finally:
        await connection.close()


async def ask(port: int, data: bytes, patience: float = PATIENCE) -> RawAnswer:
    """Send bytes on a connection of their own and read the answer.

    It is read while they are sent: an early one would be lost with the connection.
    """
    async with connected(port) as connection:
        sending = asyncio.ensure_future(connection.send(data))
        try:
            return await connection.answer(patience)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


def request(
    *lines: bytes,
    body: bytes = b"{}",
    method: bytes = b"POST",
    target: bytes = b"/chat",
    version: bytes = b"HTTP/1.1",
    host: bytes = b"Host: HOST",
    token: bytes | None = None,
    kind: bytes = b"Content-Type: application/json",
    length: bytes | None = None,
) -> bytes:
    """Write a request that is right but for what the caller changes.

    A header given as b"" is left out; `length` is that of the body unless given.
    HOST, PORT, TOKEN and OWNER are placeholders, see `filled`; the last two are the
    tokens of clients and, for paths below /byok/, of byok's commands.
    """
    if token is None:
        name = b"OWNER" if target.startswith(b"/byok/") else b"TOKEN"
        token = b"Authorization: Bearer " + name
    if length is None:
        length = b"Content-Length: %d" % len(body)
    head = (b"%s %s %s" % (method, target, version), host, token, kind, length, *lines)
    return b"\r\n".join(line for line in head if line) + b"\r\n\r\n" + body


def nested(depth: int, before: bytes = b'"message":"deep"') -> bytes:
    """Write a body whose deepest array lies at the given depth."""
    arrays = depth - 1
    return b"{%s,%s" % (before, b'"x":' + b"[" * arrays + b"]" * arrays + b"}")


def filled(data: bytes, port: int, token: str, owner: str = "") -> bytes:
    """Put the daemon's own values where the placeholders stand in the head."""
    head, gap, body = data.partition(b"\r\n\r\n")
    head = head.replace(b"HOST", b"127.0.0.1:PORT").replace(b"PORT", b"%d" % port)
    head = head.replace(b"OWNER", owner.encode()).replace(b"TOKEN", token.encode())
    return head + gap + body


async def put(editor: "Editor", data: bytes, patience: float = PATIENCE) -> RawAnswer:
    """Send a request with placeholders; check what every answer obeys."""
    port = editor.daemon.port
    owner = editor.owner_token if b"OWNER" in data else ""
    sent = filled(data, port, editor.token, owner)
    answer = await ask(port, sent, patience)
    check_answer(answer)
    return answer


def check_answer(answer: RawAnswer) -> None:
    """No answer helps a web page, and every error has the one shape."""
    check_head(answer)
    if answer.status >= 400:
        assert answer.header("content-type") == "application/json"
        check_error(answer.json)


def check_head(answer: RawAnswer) -> None:
    """No answer helps a web page, sets a cookie or names the software below."""
    names = {name for name, _ in answer.headers}
    assert not [name for name in names if name.startswith("access-control-")]
    assert "set-cookie" not in names
    assert answer.header("server") == "byok"


def check_error(whole: Any) -> None:
    """Every error has the one shape, and no insides of byok in its words."""
    assert set(whole) == {"error", "message"}
    error = whole["error"]
    assert set(error) == {"code", "message", "hint", "request_id", "retryable"}
    assert error["code"].replace("_", "").isalpha()
    assert error["message"] == whole["message"] != ""
    assert isinstance(error["retryable"], bool)
    assert "Traceback" not in error["message"]
