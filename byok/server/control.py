"""Control of the running daemon: its settings, captures, stop and restart."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from byok.capture.recorder import CaptureRecorder
from byok.chat import Json
from byok.config import Settings
from byok.errors import BadRequest, ByokError, ConfigError

_log = logging.getLogger(__name__)
# Read at the start only: the port, and what is opened or counted from then on.
_FIXED = ("server", "limits", "context", "retrieval")
_NOT_FIXED = frozenset({"retrieval.rerank"})


def _nothing_else(settings: Settings) -> None:
    """Accept any settings."""


class Source(NamedTuple):
    """Where settings come from: the file, and what reads it with all that counts.

    `check` raises where byok could not start with them and its options.
    """

    file: Path
    read: Callable[[], Settings]
    check: Callable[[Settings], None] = _nothing_else


class Control:
    """Takes settings anew when it is asked, or when their file has changed.

    Settings that cannot be used change nothing, and neither does a file that is deleted
    or emptied: its proxy and headers would be dropped without a word. Whoever runs the
    daemon waits for `ending`, and starts it again if `again` is set.
    """

    def __init__(
        self,
        source: Source,
        settings: Settings,
        instance: str,
        captures: CaptureRecorder,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.since = clock()  # when the daemon began
        self.captures = captures
        self._source = source
        self._started = self._settings = settings
        self._instance = instance
        self._use: Callable[[Settings], Awaitable[None]] | None = None
        self._stamp = _stamp(source.file)
        self._had_file = not _is_empty(self._stamp)
        self._changing = asyncio.Lock()
        self._error = ""
        self.ending = asyncio.Event()
        self.again = False

    def on_change(self, use: Callable[[Settings], Awaitable[None]]) -> None:
        """Let other settings be used by this; it raises where they cannot be."""
        self._use = use

    async def reload(self) -> None:
        """Read the settings and use them.

        Raises:
            ByokError: they cannot be used; those in force stay.
        """
        async with self._changing:
            self._stamp = _stamp(self._source.file)
            try:
                if self._is_lost():
                    raise _file_gone_error(self._source.file)
                settings = await asyncio.to_thread(self._source.read)
                if self._use is not None:
                    await self._use(settings)
            except ByokError as error:
                self._error = error.sentence
                _log.error("the previous settings stay in use: %s", error.sentence)
                raise
            self._error, self._settings = "", settings
            self._had_file = not _is_empty(self._stamp)
        _log.info("the settings were read from %s", self._source.file)
        if fixed := self._waiting():
            _log.warning("these settings need a restart: %s", ", ".join(fixed))

    async def follow(
        self, seconds: float, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Look at the file for ever; a change counts once it rests."""
        seen = self._stamp
        while True:
            await sleep(seconds)
            now = _stamp(self._source.file)
            if now == seen and now != self._stamp:
                try:
                    await self.reload()
                except ByokError:
                    pass  # it is logged, and told by the status
                except Exception:
                    _log.exception("cannot reload the settings")
            seen = now

    async def stop(self, instance: str, *, again: bool) -> None:
        """End the daemon; `again` starts it with its options, if that can be done.

        Raises:
            BadRequest: another daemon is meant.
            ConfigError: it could not start again.
        """
        if instance != self._instance:
            raise BadRequest("This request is for another daemon.", status=422)
        if again:
            settings = await self._read_for_restart()
            await asyncio.to_thread(self._source.check, settings)
        self.again = again
        self.ending.set()

    async def _read_for_restart(self) -> Settings:
        """Return what the next start will read: without the file that is the defaults.

        Raises:
            ByokError: it cannot be used.
        """
        self._stamp = _stamp(self._source.file)
        if self._is_lost():
            return await asyncio.to_thread(self._source.read)
        await self.reload()
        return self._settings

    def _is_lost(self) -> bool:
        """Tell whether the settings in force came from a file that is gone or empty."""
        return self._had_file and _is_empty(self._stamp)

    def status(self) -> Json:
        """Tell where the settings come from, and what is not in force of them."""
        file = self._source.file
        return {"file": str(file), "error": self._error, "restart": self._waiting()}

    def _waiting(self) -> list[str]:
        """Return the settings that differ from those of the start and need one."""
        return [
            f"{section}.{key}"
            for section in _FIXED
            for key, value in getattr(self._settings, section)
            if value != getattr(getattr(self._started, section), key)
            and f"{section}.{key}" not in _NOT_FIXED
        ]


def _is_empty(stamp: tuple[int, ...] | None) -> bool:
    """Tell a file that is not there, or holds not a byte."""
    return stamp is None or stamp[1] == 0


def _file_gone_error(file: Path) -> ConfigError:
    """Return the refusal to go on by defaults: they have no proxy and no headers."""
    return ConfigError(
        f"{file} is gone or empty; nothing was changed.",
        hint="Put it back, or restart byok to run without it.",
    )


def _stamp(file: Path) -> tuple[int, ...] | None:
    try:
        facts = file.stat()
    except OSError:
        return None
    # The last is when its access changed, which may have been the cure.
    return facts.st_mtime_ns, facts.st_size, facts.st_ino, facts.st_ctime_ns
