"""Server-sent events (WHATWG HTML, section 9.2.6): read and written.

Lines end in LF, CRLF or CR and nowhere else; an event may have several data lines.
Four deviations of real servers are accepted: one JSON document instead of a stream
counts as a single event; the end of the stream ends the last event; a field named
`error` is an error event; and the body of an error that a failing gateway writes
between the events, as JSON without a field, becomes an error event at the end. An HTML
page is refused. The work is linear in the number of bytes, however they are split into
slices.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from byok.core.errors import UpstreamGarbled
from byok.core.wire.json_body import parse_json
from byok.core.wire.json_lines import encode_line

if TYPE_CHECKING:
    from byok.core.chat import Json


_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_CR = 0x0D
MAX_EVENT_BYTES = 4 * 1024 * 1024
MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
_MAX_STRAY_BYTES = 64 * 1024
_IGNORED_FIELDS = frozenset({b"", b"id", b"retry"})  # b"" is a comment
COMMENT: "Json" = {}  # an event that clients ignore, sent as a heartbeat
DONE: "Json" = {"done": True}  # stands for the last event of Chat Completions, no JSON
_COMMENT = b": byok\n\n"
_DONE = b"data: [DONE]\n\n"


class ServerSentEvent(Struct, gc=False):
    """One event; `event` is empty if the stream did not name it."""

    data: bytes
    event: str = ""


class SSEDecoder:
    """Splits bytes into server-sent events: Stage[bytes, ServerSentEvent]."""

    def __init__(self) -> None:
        self._head: bytes | None = b""  # None once the kind of answer is known
        self._document: list[bytes] | None = None
        self._size = 0
        self._after_cr = False
        self._is_between_events = False  # the buffers are empty
        self._line_pieces: list[bytes] = []  # of the line that has not ended
        self._data: list[bytes] = []
        self._event = ""
        self._stray_lines: list[bytes] = []  # perhaps the body of an error
        self._stray_size = 0
        self._ready: list[ServerSentEvent] = []

    def feed(self, chunk: bytes, /) -> list[ServerSentEvent]:
        """Consume any slice of the answer; return the events that are complete."""
        if self._is_between_events and (events := _split_events(chunk)):
            return events  # the usual slice of a streaming model
        if self._head is not None:
            chunk = self._sniff(chunk)
        if self._document is not None:
            self._count_bytes(len(chunk), MAX_DOCUMENT_BYTES)
            self._document.append(chunk)
        elif chunk:
            self._read_stream(chunk)
        return self._pop_events()

    def flush(self) -> list[ServerSentEvent]:
        """Treat the end of the answer as the end of the last event."""
        if self._document is not None:
            body = b"".join(self._document).strip()
            return [ServerSentEvent(body)] if body else []
        self._end_line(b"".join(self._line_pieces))
        self._end_line(b"")
        self._line_pieces = []
        if body := _read_error(b"\n".join(self._stray_lines)):
            self._ready.append(ServerSentEvent(body, "error"))
        return self._pop_events()

    def _pop_events(self) -> list[ServerSentEvent]:
        ready, self._ready = self._ready, []
        return ready

    def _sniff(self, chunk: bytes) -> bytes:
        """Distinguish a stream from a JSON document by its first significant byte."""
        head = (self._head or b"") + chunk
        start = head.removeprefix(_BOM).lstrip(_BLANK)
        if not start or _BOM.startswith(head):
            # Blank lines before the first event have no meaning. A blank before a field
            # makes it another field, so one blank is kept. It is kept also because a
            # BOM is one at the very beginning only.
            self._head = head if _BOM.startswith(head) else head[-1:]
            return b""
        self._head = None
        head = head.removeprefix(_BOM)
        if start[:1] == b"<":
            raise UpstreamGarbled(
                "it answered with a web page instead of a model's answer.",
                code="upstream_not_json",
                hint="Check that base_url ends where the API begins, usually in /v1.",
            )
        if start[:1] in (b"{", b"["):
            self._document = []
        return head

    def _read_stream(self, chunk: bytes) -> None:
        """Read a slice; complete events in its middle are split by the fast path."""
        if _CR in chunk or self._after_cr or len(chunk) > MAX_EVENT_BYTES:
            self._read_lines(self._normalise(chunk))
            return
        if not self._is_between_events and (end := chunk.find(b"\n\n") + 2) > 1:
            self._read_lines(chunk[:end])
            chunk = chunk[end:]
        end = chunk.rfind(b"\n\n") + 2
        if self._is_between_events and (events := _split_events(chunk[:end])):
            self._ready += events
            chunk = chunk[end:]
        if chunk:
            self._read_lines(chunk)

    def _normalise(self, chunk: bytes) -> bytes:
        """Convert all line ends to LF; a CR at the end of a slice may begin a CRLF."""
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk[-1:] == b"\r"
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk

    def _read_lines(self, chunk: bytes) -> None:
        self._count_bytes(len(chunk), MAX_EVENT_BYTES)
        first, *lines = chunk.split(b"\n")
        if not lines:
            self._line_pieces.append(first)
            self._is_between_events = False
            return
        if self._line_pieces:
            self._line_pieces.append(first)
            first = b"".join(self._line_pieces)
        last = lines.pop()
        self._end_line(first)
        for line in lines:
            self._end_line(line)
        self._line_pieces = [last]
        if not self._data:  # no event is open: only the unfinished line is buffered
            self._size = len(last)
        elif not first or b"" in lines:  # the open event began in this slice
            self._size = len(last) + sum(map(len, self._data))
        self._is_between_events = not (
            last or self._data or self._event or self._after_cr
        )

    def _end_line(self, line: bytes) -> None:
        if line.startswith(b"data: "):
            self._data.append(line[6:])
        elif line:
            self._read_field(line)
        else:
            data, name = self._data, self._event
            if data:
                joined = data[0] if len(data) == 1 else b"\n".join(data)
                self._ready.append(ServerSentEvent(joined, name))
                self._data = []
            self._event = ""

    def _read_field(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"data":
            self._data.append(value)
        elif field == b"error":
            self._event = "error"
            self._data.append(value)
        elif field not in _IGNORED_FIELDS:
            self._store_stray(line)

    def _store_stray(self, line: bytes) -> None:
        """Store a line that is no field, if it may belong to the body of an error."""
        if not self._stray_lines and line.lstrip()[:1] not in (b"{", b"["):
            return
        self._stray_size += len(line)
        if self._stray_size <= _MAX_STRAY_BYTES:
            self._stray_lines.append(line)

    def _count_bytes(self, size: int, limit: int) -> None:
        self._size += size
        if self._size > limit:
            raise UpstreamGarbled(
                f"one event of its answer is larger than {limit // 2**20} MiB.",
                code="upstream_event_too_large",
            )


def _read_error(body: bytes) -> bytes:
    """Return a body if it is a JSON document of an error, else b""."""
    if not body:
        return b""
    try:
        value: Any = parse_json(body)
    except (ValueError, RecursionError):
        return b""
    while isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return b""
    has_error = value.get("error") or value.get("errors") or value.get("detail")
    is_named = "error" in (value.get("type"), value.get("object"))
    has_code = "message" in value and ("code" in value or "status" in value)
    return body if has_error or is_named or has_code else b""


def _split_events(chunk: bytes) -> list[ServerSentEvent]:
    """Split a slice of whole events with one data line each; [] for any other input.

    This is the fast path. Either all events have a name before that line, or none has.
    """
    if not chunk.endswith(b"\n\n") or len(chunk) > MAX_EVENT_BYTES or _CR in chunk:
        return []
    if chunk.startswith(b"event: "):
        return _split_named_events(chunk)
    if not chunk.startswith(b"data: "):
        return []
    if chunk.find(b"\n") == len(chunk) - 2:
        return [ServerSentEvent(chunk[6:-2])]
    parts = chunk[6:-2].split(b"\n\ndata: ")
    if chunk.count(b"\n") != 2 * len(parts):
        return []
    return [*map(ServerSentEvent, parts)]


def _split_named_events(chunk: bytes) -> list[ServerSentEvent]:
    parts = chunk[7:-2].split(b"\n\nevent: ")
    if chunk.count(b"\n") != 3 * len(parts):
        return []
    events: list[ServerSentEvent] = []
    for event in parts:
        name, line, data = event.partition(b"\ndata: ")
        if not line:
            return []
        events.append(ServerSentEvent(data, name.decode("utf-8", "replace")))
    return events


def encode_data(value: "Json") -> bytes:
    """Serialise an event without a name, `DONE` or a `COMMENT`."""
    if value is DONE:
        return _DONE
    return b"data: " + encode_line(value) + b"\n" if value else _COMMENT


def encode_named(value: "Json") -> bytes:
    """Serialise an event that is named by its `type`, or a `COMMENT`."""
    if not value:
        return _COMMENT
    name = str(value["type"]).encode()
    return b"event: " + name + b"\ndata: " + encode_line(value) + b"\n"
