"""A captured request: its facts, and the pieces that passed; as lines of JSON."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from byok.core.errors import ByokError
from byok.core.record import Head, Hop
from byok.core.wire.json_body import parse_json

MAGIC = b'{"byok_capture":1,'  # how each file begins


class Piece(NamedTuple):
    """What one read or write carried, or a head; already redacted.

    `at` is in seconds since the request came. `attempt` counts the requests to
    upstreams, 0 at the client's side. `left_out` counts bytes that were not kept.
    """

    at: float
    hop: Hop
    attempt: int = 0
    text: str = ""
    head: Head | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Capture:
    """One request: facts by their names, such as `endpoint`, and its pieces."""

    facts: dict[str, Any]
    pieces: tuple[Piece, ...]

    @property
    def id(self) -> str:
        """The id of the request, which its answer has as X-Request-Id."""
        return str(self.facts.get("id", ""))

    def text(self, hop: Hop, attempt: int = 0) -> str:
        """Return what passed on a hop, without heads."""
        return "".join(piece.text for piece in self._on(hop, attempt))

    def head(self, hop: Hop, attempt: int = 0) -> Head | None:
        """Return the last head on a hop."""
        heads = [piece.head for piece in self._on(hop, attempt) if piece.head]
        return heads[-1] if heads else None

    def _on(self, hop: Hop, attempt: int) -> Iterable[Piece]:
        here = (hop, attempt)
        return (piece for piece in self.pieces if (piece.hop, piece.attempt) == here)

    @property
    def attempts(self) -> list[int]:
        """The numbers of the requests to upstreams."""
        return sorted({piece.attempt for piece in self.pieces} - {0})


def encode_capture(capture: Capture) -> bytes:
    """Write the facts and then each piece as a line of JSON."""
    facts = orjson.dumps(capture.facts)[1:]
    rows = map(write_piece, capture.pieces)
    lines = [MAGIC + facts, *map(orjson.dumps, rows)]
    return b"\n".join(lines) + b"\n"


def write_piece(piece: Piece) -> dict[str, Any]:
    """Return a piece as an object for JSON."""
    row: dict[str, Any] = {"at": round(piece.at, 6), "hop": piece.hop.value}
    if piece.attempt:
        row["attempt"] = piece.attempt
    if piece.head is not None:
        row |= {"line": piece.head.line, "headers": piece.head.headers}
    elif piece.left_out:
        row["left_out"] = piece.left_out
    else:
        row["text"] = piece.text
    return row


def decode_capture(raw: bytes) -> Capture:
    """Read a file.

    Raises:
        ByokError: it is no capture, or a damaged one.
    """
    try:
        first, *rows = [parse_json(line) for line in raw.split(b"\n") if line]
        if first.pop("byok_capture") != 1:
            raise ValueError("another version")
        return Capture(first, tuple(_decode_pieces(rows)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ByokError("The capture cannot be read.", code="bad_capture") from error


def _decode_pieces(rows: Iterable[Any]) -> Iterable[Piece]:
    for row in rows:
        head = None
        if "line" in row:
            pairs = ((str(name), str(value)) for name, value in row["headers"])
            head = Head(str(row["line"]), tuple(pairs))
        yield Piece(
            float(row["at"]),
            Hop(row["hop"]),
            int(row.get("attempt", 0)),
            str(row.get("text", "")),
            head,
            int(row.get("left_out", 0)),
        )
