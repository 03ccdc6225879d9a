"""Set up logging: redacted lines to stderr and to a rotating file."""

import errno
import logging
import os
import select
import sys
import time
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

from byok.core.platform.installation import make_pasteable
from byok.core.platform.paths import make_private
from byok.core.redact import Redactor

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_FILE_BYTES, _FILES = 10 * 2**20, 5
_PIECE_CHARS = getattr(select, "PIPE_BUF", 512) // 4  # each has at most four bytes
# httpx writes whole URLs at INFO; asyncio and aiohttp write request lines.
_QUIET_LOGGERS = ("httpx", "httpcore", "asyncio", "aiohttp", "keyring")


class LogLines(list[str]):
    """A message of several lines; each is logged like a message of its own."""

    def __str__(self) -> str:
        return "\n".join(self)


class RedactingFormatter(logging.Formatter):
    """Removes secrets from the finished text, traceback included."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__(_FORMAT)
        self._redactor = redactor
        self._last: tuple[logging.LogRecord, str] | None = None
        self._second, self._time = -1, ""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record without secrets and without control characters."""
        last = self._last  # each handler formats the same record
        if last is None or last[0] is not record:
            text = self._redactor(super().format(record))
            if record.levelno >= logging.WARNING:  # it may name a command
                text = make_pasteable(text)
            if not text.replace("\n", "").isprintable():
                text = "".join(
                    c if c.isprintable() or c in "\n\t" else "?" for c in text
                )
            last = self._last = (record, text)
        return last[1]

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Format a record without its traceback."""
        text = super().formatMessage(record)
        if isinstance(record.msg, LogLines):
            head = text.removesuffix(record.message)
            text = "\n".join(f"{head}{line}" for line in record.msg)
        return text

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Format the time; records of the same second share most of it."""
        if (second := int(record.created)) != self._second:
            self._time = time.strftime(self.default_time_format, self.converter(second))
            self._second = second
        return f"{self._time},{int(record.msecs):03d}"


class _DroppingStream:
    """A stream that drops text instead of blocking.

    If nobody reads the pipe that the daemon was started with, it would block once the
    pipe is full.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        """Write in pieces that a pipe accepts as a whole or not at all."""
        for start in range(0, len(text), _PIECE_CHARS):
            if self._is_full():
                return
            self._stream.write(text[start : start + _PIECE_CHARS])
            self._stream.flush()

    def _is_full(self) -> bool:
        try:
            return not select.select((), (self._stream,), (), 0)[1]
        except (OSError, ValueError):  # no pipe: on Windows, or in a test
            return False


class _LogFile(RotatingFileHandler):
    """A log file that rotates by size, and is created again if it was deleted.

    Its size is read once per record; the base class would do so four times.
    """

    _size = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            self._size = os.stat(self.baseFilename).st_size  # noqa: PTH116 - much faster
        except OSError:
            self._size = 0
            if self.stream is not None:
                self.stream.close()
                self.stream = None  # it is opened again when needed
        super().emit(record)

    def shouldRollover(self, record: logging.LogRecord) -> bool:
        """Tell whether the record would make the file too large."""
        return self._size + len(self.format(record)) >= self.maxBytes


def set_up_logging(level: str, file: Path | None, redactor: Redactor) -> None:
    """Send every record to stderr, and to `file` if that can be written."""
    handlers: list[logging.Handler]
    handlers = [logging.StreamHandler(_DroppingStream(sys.stderr))]
    problem = ""
    if file is not None:
        try:
            handlers.append(_open_file(file))
        except OSError as error:
            problem = f"no log file: {error.strerror}"
    formatter = RedactingFormatter(redactor)
    for handler in handlers:
        handler.setFormatter(formatter)
    # Otherwise a record that cannot be written is printed with its raw arguments.
    logging.raiseExceptions = False
    # Fields that the format does not show; collecting them takes time.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
    root = logging.getLogger()
    root.handlers[:] = handlers
    set_level(level)
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    if problem:
        logging.getLogger(__name__).warning(problem)


def _open_file(file: Path) -> _LogFile:
    make_private(file.parent)
    if file.exists() and not file.is_file():  # a FIFO would block the start
        raise FileExistsError(errno.EEXIST, f"{file} is not a regular file")
    handler = _LogFile(
        file, maxBytes=_FILE_BYTES, backupCount=_FILES - 1, encoding="utf-8"
    )
    file.chmod(0o600)
    return handler


def set_level(level: str) -> None:
    """Write records of this level and above."""
    logging.getLogger().setLevel(level.upper())
