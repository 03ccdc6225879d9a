"""byok service logs: the end of byok's log file, and what is written to it."""

import os
import time
from pathlib import Path
from typing import IO, Annotated, Self

import typer

from byok.cli.output import say, tell
from byok.platform.paths import find_paths

_LONGEST_TAIL = 4 * 2**20
_LONGEST_LINE = 2**20
_PAUSE = 0.3
_SYSTEMD = Path("/run/systemd/system")


def logs(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing new lines.")
    ] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", help="How many lines.", min=0, max=10_000)
    ] = 50,
) -> None:
    """Show the last lines of byok's log, whatever started it."""
    log = find_paths().log
    if not log.is_file() and not follow:
        tell(f"There is no log yet: {log}")
    with LogReader(log) as reader:
        for line in reader.tail(lines):
            say(line)
        if _SYSTEMD.is_dir():
            tell("Why systemd did not start it: journalctl --user -u byok.service")
        while follow:
            try:
                time.sleep(_PAUSE)
            except KeyboardInterrupt:
                return
            for line in reader.more():
                say(line)


class LogReader:
    """Reads the end of a log file, then what is added, also to the file after it."""

    def __init__(self, path: Path) -> None:
        """Open the file when it is read; it need not exist yet."""
        self._path = path
        self._file: IO[bytes] | None = None
        self._begun = b""  # a line without its end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self._close()

    def tail(self, count: int) -> list[str]:
        """Return the last lines, of the last 4 MiB; `more` goes on behind them."""
        if not self._open():
            return []
        assert self._file is not None  # noqa: S101 - it has just been opened
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(0, size - _LONGEST_TAIL))
        lines = self._take(self._file.read(size))
        return lines[-count:] if count else []

    def more(self) -> list[str]:
        """Return the lines that were added since."""
        lines: list[str] = []
        if self._file is not None:
            lines = self._read()
            if not self._is_current():
                lines += self._read()  # what came until it was rotated
                self._close()
        if self._file is None and self._open():
            lines += self._read()
        return lines

    def _read(self) -> list[str]:
        assert self._file is not None  # noqa: S101 - callers open it
        return self._take(self._file.read(_LONGEST_TAIL))

    def _take(self, data: bytes) -> list[str]:
        """Return whole lines; the rest waits, or is cut if no line is so long."""
        *lines, self._begun = (self._begun + data).split(b"\n")
        if len(self._begun) > _LONGEST_LINE:
            lines.append(self._begun)
            self._begun = b""
        return [line.decode("utf-8", "replace") for line in lines]

    def _open(self) -> bool:
        if self._file is None and self._path.is_file():
            self._file = self._path.open("rb")
        return self._file is not None

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._begun = None, b""

    def _is_current(self) -> bool:
        """Tell whether the name still leads to this file, and it was not cut."""
        assert self._file is not None  # noqa: S101 - callers open it
        try:
            now = self._path.stat()
        except OSError:
            return False
        own = os.fstat(self._file.fileno())
        same = (now.st_ino, now.st_dev) == (own.st_ino, own.st_dev)
        return same and now.st_size >= self._file.tell()
