"""JSON Lines: read as values, within limits; written as NDJSON for the clients.

Two deviations of real servers are accepted: the last line may lack its line end, and
one indented document counts as a single value. An HTML page is refused. The work is
linear in the number of bytes, however they are split into slices.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson

from byok.core.errors import UpstreamGarbled, UpstreamNotJson
from byok.core.stage import then_raise
from byok.core.wire.json_body import join_surrogates, parse_json, write_json

if TYPE_CHECKING:
    from byok.core.chat import Json


_BOM = b"\xef\xbb\xbf"
MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
# Clients in Python split lines with str.splitlines, which also splits at U+2028,
# U+2029 and U+0085. In JSON these occur only in strings, where an escape is equal.
_LINE_SEPARATORS = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)


class JsonLines:
    """Stage[bytes, Any] that returns the value of each line.

    Lone surrogates are kept: the other half may come in the next line. Feeding raises
    UpstreamGarbled for a line that is not JSON or larger than MAX_LINE_BYTES.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the line that has not ended
        self._size = 0
        self._is_first = True  # no value was read yet
        self._is_document = False  # the value goes on until the end of the answer

    def feed(self, chunk: bytes, /) -> Iterable[Any]:
        """Consume any slice of the answer; yield values before a failure is raised."""
        values: list[Any] = []
        try:
            first, *pieces = chunk.split(b"\n")
            self._buffer(first)
            for piece in pieces:
                values += self._end_line()
                self._buffer(piece)
        except UpstreamGarbled as error:
            return then_raise(values, error)
        return values

    def flush(self) -> Iterable[Any]:
        """Treat the end of the answer as the end of the last line."""
        self._is_document = False
        values = self._end_line()
        if self._is_document:  # the last line began a value that is not complete
            raise _not_json()
        return values

    def _buffer(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        limit = MAX_DOCUMENT_BYTES if self._is_document else MAX_LINE_BYTES
        if self._size > limit:
            raise UpstreamGarbled(
                f"one line of its answer is larger than {limit // 2**20} MiB.",
                code="upstream_event_too_large",
            )

    def _end_line(self) -> list[Any]:
        if self._is_document:
            self._buffer(b"\n")
            return []
        line = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        if self._is_first:
            line = line.removeprefix(_BOM)
        if not line.strip():
            return []
        try:
            value = parse_json(line, keep_halves=True)
        except (ValueError, RecursionError) as error:
            return self._begin_document(line, error)
        self._is_first = False
        return [value]

    def _begin_document(self, line: bytes, error: Exception) -> list[Any]:
        """Buffer a first line that is no value by itself until the answer ends."""
        start = line.lstrip()[:1]
        if start == b"<" and self._is_first:
            raise UpstreamGarbled(
                "it answered with a web page instead of a model's answer.",
                code="upstream_not_json",
                hint="Check that base_url ends where the API begins.",
            ) from error
        if start not in (b"{", b"[") or not self._is_first:
            raise _not_json() from error
        self._is_document = True
        self._buffer(line + b"\n")
        return []


def _not_json() -> UpstreamNotJson:
    return UpstreamNotJson("a part of its answer is not JSON.")


def encode_line(value: "Json") -> bytes:
    """Serialise one object as one line, with LF at its end.

    A lone surrogate, which UTF-8 cannot encode, becomes U+FFFD.
    """
    try:
        line = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        line = write_json(_replace_surrogates(value)) + b"\n"
    if line.isascii():
        return line
    for raw, escaped in _LINE_SEPARATORS:
        if raw[0] in line and raw in line:  # to look for one byte is far cheaper
            line = line.replace(raw, escaped)
    return line


def _replace_surrogates(value: object) -> object:
    match value:
        case str():
            return join_surrogates(value)
        case dict():
            return {
                join_surrogates(str(k)): _replace_surrogates(v)
                for k, v in value.items()
            }
        case list() | tuple():
            return [_replace_surrogates(item) for item in value]
        case _:
            return value
