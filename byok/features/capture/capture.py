"""Captured requests: facts and pieces as lines of JSON, in a folder of files."""

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from msgspec import Struct

from byok.core.errors import ByokError, ConfigError
from byok.core.platform.paths import READ_PLAIN, make_private, write_private
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


class Capture(Struct, frozen=True):
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


# The folder of captures: what is in it, what is too old or too much.
#
# Only files that are byok's own are read or deleted: plain ones of this user, with such
# a name and such a beginning. No link is followed.


KEPT_SECONDS = 86_400.0
MOST_BYTES = 200_000_000
_NAME = re.compile(r"([0-9a-f]{16})\.capture\.jsonl")
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.capture\.jsonl\.[a-z0-9_]{8}")
_BEGUN = re.compile(r"[0-9a-f]{4,16}")
_LONGEST_FACTS = 65_536
_LARGEST = 300_000_000  # bytes that are ever read of a file


class StoredCapture(NamedTuple):
    """A file of a capture; `written` is in seconds since 1970."""

    id: str
    path: Path
    size: int
    written: float


class CaptureFolder:
    """Reads, writes and deletes captures. All methods block."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, capture: Capture) -> None:
        """Store a capture.

        Raises:
            OSError: it cannot be stored, or the folder is not private.
        """
        make_private(self.path)
        if not _is_private(self.path):
            raise PermissionError(f"{self.path} is not a private folder")
        name = f"{capture.id}.capture.jsonl"
        write_private(self.path / name, encode_capture(capture))

    def contents(self) -> list[StoredCapture]:
        """Return all captures, the oldest first."""
        found = [
            StoredCapture(match[1], path, facts.st_size, facts.st_mtime)
            for path, facts in self._files()
            if (match := _NAME.fullmatch(path.name)) and _begins_right(path)
        ]
        return sorted(found, key=lambda stored: (stored.written, stored.id))

    def find(self, begun: str) -> StoredCapture:
        """Return the capture whose id begins like this.

        Raises:
            ConfigError: none does, or several do.
        """
        hint = "Run: byok capture list"
        if not _BEGUN.fullmatch(begun):
            raise ConfigError("An id has 4 to 16 characters of 0-9a-f.", hint=hint)
        found = [stored for stored in self.contents() if stored.id.startswith(begun)]
        if len(found) != 1:
            several = f"Several captures begin with {begun}."
            none = f"No capture begins with {begun}."
            raise ConfigError(several if found else none, hint=hint)
        return found[0]

    def read(self, begun: str) -> Capture:
        """Return the content of the capture whose id begins like this.

        Raises:
            ConfigError: none does, or several do.
            ByokError: it is damaged.
        """
        return decode_capture(_read(self.find(begun).path, _LARGEST))

    def facts(self, stored: StoredCapture) -> dict[str, Any]:
        """Return the facts of a capture alone.

        Raises:
            ByokError: it is damaged.
        """
        first, _, _ = _read(stored.path, _LONGEST_FACTS).partition(b"\n")
        return decode_capture(first).facts

    def tidy(self, now: float, most_bytes: int = MOST_BYTES) -> int:
        """Delete what is older than a day, then the oldest; return how many are left.

        `now` is in seconds since 1970. What is from more than a day ahead was written
        before the clock was set back; nobody knows its age, so it goes too.
        """
        for path, facts in self._files():
            if _TEMPORARY.fullmatch(path.name) and _is_old(facts.st_mtime, now):
                path.unlink(missing_ok=True)
        left = []
        for stored in self.contents():
            if _is_old(stored.written, now):
                stored.path.unlink(missing_ok=True)
            else:
                left.append(stored)
        total = sum(stored.size for stored in left)
        while total > most_bytes:
            total -= left[0].size
            left.pop(0).path.unlink(missing_ok=True)
        return len(left)

    def clear(self) -> int:
        """Delete all captures; return how many these were."""
        found = self.contents()
        for stored in found:
            stored.path.unlink(missing_ok=True)
        return len(found)

    def sweep(self) -> None:
        """Delete what a killed daemon left half written; for the only writer."""
        for path, _ in self._files():
            if _TEMPORARY.fullmatch(path.name) and _begins_right(path, whole=False):
                path.unlink(missing_ok=True)

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        """Return the plain files of this user, unless the folder itself is a link."""
        if not _is_private(self.path):
            return []
        found = []
        for entry in os.scandir(self.path):
            facts = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(facts.st_mode) and _is_own(facts) and facts.st_nlink == 1:
                found.append((Path(entry.path), facts))
        return found


def _is_old(written: float, now: float) -> bool:
    return abs(now - written) > KEPT_SECONDS


def _is_private(folder: Path) -> bool:
    """Tell whether it is a folder, no link, that only this user can enter."""
    try:
        facts = folder.lstat()
    except OSError:
        return False
    shared = hasattr(os, "geteuid") and facts.st_mode & 0o077
    return stat.S_ISDIR(facts.st_mode) and _is_own(facts) and not shared


def _is_own(facts: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or facts.st_uid == os.geteuid()


def _begins_right(path: Path, *, whole: bool = True) -> bool:
    """Tell whether a file is a capture, or without `whole` the beginning of one."""
    try:
        begun = _read(path, len(MAGIC))
    except OSError:
        return False
    return begun == MAGIC if whole else MAGIC.startswith(begun)


def _read(path: Path, most: int) -> bytes:
    with os.fdopen(os.open(path, READ_PLAIN), "rb") as file:
        return file.read(most)
