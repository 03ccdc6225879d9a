"""Read JSON Lines: bytes in, values out (one JSON value per line, LF or CRLF).

Two deviations of real servers are accepted: the last line may lack its line end, and
one indented document counts as a single value. An HTML page is refused. The work is
linear in the number of bytes, however they are sliced.
"""

from collections.abc import Iterable
from typing import Any

from byok.errors import UpstreamGarbled, UpstreamNotJson
from byok.stage import then_raise
from byok.wire.json_body import parse_json

_BOM = b"\xef\xbb\xbf"
MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_DOCUMENT_BYTES = 32 * 1024 * 1024


class JsonLines:
    """Stage[bytes, Any] that returns the value of each line.

    Lone surrogates are kept: the other half may come in the next line. Feeding raises
    UpstreamGarbled for a line that is not JSON or larger than MAX_LINE_BYTES.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the line that has not ended
        self._size = 0
        self._is_first = True  # no value was read yet
        self._is_document = False  # the first line only begins a value

    def feed(self, chunk: bytes, /) -> Iterable[Any]:
        """Take any slice of the answer; values before a failure are returned first."""
        values: list[Any] = []
        try:
            first, *rest = chunk.split(b"\n")
            self._hold(first)
            for piece in rest:
                values += self._end_line()
                self._hold(piece)
        except UpstreamGarbled as error:
            return then_raise(values, error)
        return values

    def flush(self) -> Iterable[Any]:
        """Treat the end of the answer as the end of the last line."""
        self._is_document = False
        values = self._end_line()
        if self._is_document:  # that line began a value which nothing completes
            raise _not_json()
        return values

    def _hold(self, piece: bytes) -> None:
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
            self._hold(b"\n")
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
        """Hold a first line that is no value by itself, until the answer ends."""
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
        self._hold(line + b"\n")
        return []


def _not_json() -> UpstreamNotJson:
    return UpstreamNotJson("a part of its answer is not JSON.")
