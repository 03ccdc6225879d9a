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

MAGIC = b'{"byok_capture":1,'  # the beginning of each file
KEPT_SECONDS = 86_400.0
MOST_BYTES = 200_000_000  # of all files
_MAX_FACTS_BYTES = 65_536
_MAX_READ_BYTES = 300_000_000  # of a file
_NAME = re.compile(r"([0-9a-f]{16})\.capture\.jsonl")
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.capture\.jsonl\.[a-z0-9_]{8}")
_ID_PREFIX = re.compile(r"[0-9a-f]{4,16}")


class Piece(NamedTuple):
    """The text of one read or write, or a head; already redacted.

    `at` is in seconds since the request came. `attempt` is the number of the request to
    an upstream, 0 on the client's side. `left_out` is the number of dropped bytes.
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
        """The id of the request, which is in its answer as X-Request-Id."""
        return str(self.facts.get("id", ""))

    def text(self, hop: Hop, attempt: int = 0) -> str:
        """Return the text that passed on a hop, without heads."""
        return "".join(piece.text for piece in self._pieces_on(hop, attempt))

    def head(self, hop: Hop, attempt: int = 0) -> Head | None:
        """Return the last head on a hop."""
        heads = [piece.head for piece in self._pieces_on(hop, attempt) if piece.head]
        return heads[-1] if heads else None

    def _pieces_on(self, hop: Hop, attempt: int) -> Iterable[Piece]:
        return (p for p in self.pieces if (p.hop, p.attempt) == (hop, attempt))

    @property
    def attempts(self) -> list[int]:
        """The numbers of the requests to upstreams."""
        return sorted({piece.attempt for piece in self.pieces} - {0})


def encode_capture(capture: Capture) -> bytes:
    """Encode the facts, and then each piece, as a line of JSON."""
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
    """Decode the content of a file.

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


class StoredCapture(NamedTuple):
    """A file of a capture; `written` is in seconds since 1970."""

    id: str
    path: Path
    size: int
    written: float


class CaptureFolder:
    """Reads, writes and deletes captures. All methods block.

    Only byok's own files are read or deleted: plain files of this user with the right
    name and beginning. Links are not followed.
    """

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
        captures = [
            StoredCapture(match[1], path, status.st_size, status.st_mtime)
            for path, status in self._files()
            if (match := _NAME.fullmatch(path.name)) and _has_magic(path)
        ]
        return sorted(captures, key=lambda stored: (stored.written, stored.id))

    def find(self, prefix: str) -> StoredCapture:
        """Return the capture whose id begins with a prefix.

        Raises:
            ConfigError: there is none, or several.
        """
        hint = "Run: byok capture list"
        if not _ID_PREFIX.fullmatch(prefix):
            raise ConfigError("An id has 4 to 16 characters of 0-9a-f.", hint=hint)
        matches = [stored for stored in self.contents() if stored.id.startswith(prefix)]
        if len(matches) != 1:
            several = f"Several captures begin with {prefix}."
            none = f"No capture begins with {prefix}."
            raise ConfigError(several if matches else none, hint=hint)
        return matches[0]

    def read(self, prefix: str) -> Capture:
        """Return the content of the capture whose id begins with a prefix.

        Raises:
            ConfigError: there is none, or several.
            ByokError: it is damaged.
        """
        return decode_capture(_read(self.find(prefix).path, _MAX_READ_BYTES))

    def facts(self, stored: StoredCapture) -> dict[str, Any]:
        """Return the facts of a capture alone.

        Raises:
            ByokError: it is damaged.
        """
        first, _, _ = _read(stored.path, _MAX_FACTS_BYTES).partition(b"\n")
        return decode_capture(first).facts

    def tidy(self, now: float, most_bytes: int = MOST_BYTES) -> int:
        """Delete captures older than a day, then the oldest; return how many remain.

        `now` is in seconds since 1970. A capture of more than a day ahead was written
        before the clock was set back; its age is unknown, so it is deleted, too.
        """
        for path, status in self._files():
            if _TEMPORARY.fullmatch(path.name) and _is_old(status.st_mtime, now):
                path.unlink(missing_ok=True)
        remaining = []
        for stored in self.contents():
            if _is_old(stored.written, now):
                stored.path.unlink(missing_ok=True)
            else:
                remaining.append(stored)
        total = sum(stored.size for stored in remaining)
        while total > most_bytes:
            total -= remaining[0].size
            remaining.pop(0).path.unlink(missing_ok=True)
        return len(remaining)

    def clear(self) -> int:
        """Delete all captures; return their number."""
        captures = self.contents()
        for stored in captures:
            stored.path.unlink(missing_ok=True)
        return len(captures)

    def sweep(self) -> None:
        """Delete temporary files of a killed daemon; for the only writer."""
        for path, _ in self._files():
            if _TEMPORARY.fullmatch(path.name) and _has_magic(path, whole=False):
                path.unlink(missing_ok=True)

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        """Return the plain files of this user, unless the folder itself is a link."""
        if not _is_private(self.path):
            return []
        files = []
        for entry in os.scandir(self.path):
            status = entry.stat(follow_symlinks=False)
            is_plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            if is_plain and _is_own(status):
                files.append((Path(entry.path), status))
        return files


def _is_old(written: float, now: float) -> bool:
    return abs(now - written) > KEPT_SECONDS


def _is_private(folder: Path) -> bool:
    """Tell whether a path is a folder, no link, that only this user can enter."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    is_shared = hasattr(os, "geteuid") and status.st_mode & 0o077
    return stat.S_ISDIR(status.st_mode) and _is_own(status) and not is_shared


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _has_magic(path: Path, *, whole: bool = True) -> bool:
    """Tell whether a file is a capture, or without `whole` the beginning of one."""
    try:
        start = _read(path, len(MAGIC))
    except OSError:
        return False
    return start == MAGIC if whole else MAGIC.startswith(start)


def _read(path: Path, max_bytes: int) -> bytes:
    with os.fdopen(os.open(path, READ_PLAIN), "rb") as file:
        return file.read(max_bytes)
