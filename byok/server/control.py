"""Control of the running daemon: its settings, stop and restart."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from byok.core.chat import Json
from byok.core.errors import BadRequest, ByokError, ConfigError
from byok.settings import Settings, check_settings, make_settings

_log = logging.getLogger(__name__)
# Read at the start only: the port, and what is opened or counted from then on.
_FIXED = ("server", "limits", "context", "retrieval")
_NOT_FIXED = frozenset({"retrieval.rerank"})


class Source(NamedTuple):
    """Where settings come from: the file, and what reads it with all that counts.

    `check` raises where byok could not start with them and its options. `overrides` are
    the settings of the command line, `options` its options by the settings that they
    outrank, such as "routing.default".
    """

    file: Path
    read: Callable[[], Settings]
    check: Callable[[Settings], None] = check_settings
    overrides: Mapping[str, Any] = MappingProxyType({})
    options: Mapping[str, str] = MappingProxyType({})

    def judge(self, given: Mapping[str, Any]) -> Settings:
        """Return the settings of a file that had these tables of values.

        Raises:
            ConfigError: it could not be used.
        """
        settings = make_settings(given, self.file)
        if self.overrides:
            settings = make_settings(given, self.file, self.overrides)
        self.check(settings)
        return settings


class Control:
    """Takes settings anew when it is asked, or when their file has changed.

    Settings that cannot be used change nothing, and neither does a file that is deleted
    or emptied: its proxy and headers would be dropped without a word. Whoever runs the
    daemon waits for `ending`. If `again` is set, it is to be started again; with
    `on_restart` a successor has been started by then.
    """

    def __init__(self, source: Source, settings: Settings, instance: str) -> None:
        self.since = time.time()  # when the daemon began
        self.source = source
        self._started = self.settings = settings
        self.instance = instance
        self._use: Callable[[Settings], Awaitable[None]] | None = None
        self._start_successor: Callable[[], Awaitable[None]] | None = None
        self._restarting: asyncio.Task[None] | None = None
        self._stamp = _stamp(source.file)
        self._had_file = not _is_empty(self._stamp)
        self._changing = asyncio.Lock()
        self._error = ""
        self.ending = asyncio.Event()
        self.again = False

    def on_change(self, use: Callable[[Settings], Awaitable[None]]) -> None:
        """Let other settings be used by this; it raises where they cannot be."""
        self._use = use

    def on_restart(self, start_successor: Callable[[], Awaitable[None]]) -> None:
        """Start a successor by this, which raises where that cannot be done.

        Settings that need a restart get one by themselves from now on.
        """
        self._start_successor = start_successor

    async def reload(self) -> None:
        """Read the settings and use them.

        Raises:
            ByokError: they cannot be used; those in force stay.
        """
        async with self._changing:
            await self._take()

    async def save(self, write: Callable[[], bool]) -> None:
        """Let the file be written in a thread, and use it; the change counts once.

        `write` tells whether it has written.

        Raises:
            ByokError: it is not written, for the reason that `write` or a lost file
                gives. What keeps written settings from being used is told by `status`.
        """
        async with self._changing:
            if self._is_lost(_stamp(self.source.file)):
                raise _file_gone_error(self.source.file)
            if not await asyncio.to_thread(write):
                return
            with contextlib.suppress(ByokError):  # logged, and told by the status
                await self._take()

    async def _take(self) -> None:
        former, self._stamp = self._stamp, _stamp(self.source.file)
        try:
            if self._is_lost(self._stamp):
                raise _file_gone_error(self.source.file)
            settings = await asyncio.to_thread(self.source.read)
            if self._use is not None:
                await self._use(settings)
        except ByokError as error:
            self._error = error.sentence
            _log.error("the previous settings stay in use: %s", error.sentence)
            raise
        except asyncio.CancelledError:
            self._stamp = former  # who asked is gone; the change counts all the same
            raise
        self._error, self.settings = "", settings
        self._had_file = not _is_empty(self._stamp)
        _log.info("the settings were read from %s", self.source.file)
        if fixed := self._waiting():
            self._restart_for(fixed)

    async def follow(
        self, seconds: float, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Look at the file for ever; a change counts once it rests."""
        seen = self._stamp
        while True:
            await sleep(seconds)
            now = _stamp(self.source.file)
            if now == seen and now != self._stamp:
                try:
                    await self._take_change(now)
                except ByokError:
                    pass  # it is logged, and told by the status
                except Exception:
                    _log.exception("cannot reload the settings")
            seen = now

    async def _take_change(self, now: tuple[int, ...] | None) -> None:
        async with self._changing:
            if now != self._stamp:  # else it was taken while this waited
                await self._take()

    def _restart_for(self, fixed: Sequence[str]) -> None:
        """Restart for settings that only a start reads, where nobody notices that."""
        names = ", ".join(fixed)
        if self._start_successor is None:
            _log.warning("these settings need a restart: %s", names)
        elif self._restarting is None or self._restarting.done():
            _log.info("byok restarts for these settings: %s", names)
            self._begin_restart()

    async def stop(self, instance: str, *, again: bool) -> None:
        """End the daemon; `again` starts it with its options, if that can be done.

        Raises:
            BadRequest: another daemon is meant.
            ConfigError: it could not start again.
            CannotStart: it was tried, and failed; this one goes on.
        """
        if instance != self.instance:
            raise BadRequest("This request is for another daemon.", status=422)
        if again:
            await asyncio.shield(self._begin_restart())
        else:
            self.again = False
            self.ending.set()

    async def finish_restart(self) -> None:
        """Wait for the end of a restart that had begun when byok was to stop."""
        if self._restarting is not None:
            await asyncio.wait([self._restarting])

    def _begin_restart(self) -> asyncio.Task[None]:
        """Begin a restart, or return the one under way: there is one successor.

        It goes on where whoever asked for it leaves: another process has begun by then.
        """
        if self._restarting is None or self._restarting.done():
            self._restarting = asyncio.ensure_future(self._restart())
            self._restarting.add_done_callback(self._note_failed_restart)
        return self._restarting

    def _note_failed_restart(self, restart: asyncio.Task[None]) -> None:
        error = None if restart.cancelled() else restart.exception()
        if isinstance(error, ByokError):
            self._error = error.sentence
            _log.error("%s", error.sentence)
        elif error is not None:
            _log.error("byok cannot restart", exc_info=error)

    async def _restart(self) -> None:
        settings = await self._read_for_restart()
        await asyncio.to_thread(self.source.check, settings)
        if self._start_successor is not None and not self.ending.is_set():
            await self._start_successor()
        if not self.ending.is_set():  # else it was to stop meanwhile
            self.again = True
            self.ending.set()

    async def _read_for_restart(self) -> Settings:
        """Return what the next start will read: without the file that is the defaults.

        Raises:
            ByokError: it cannot be used.
        """
        if self._is_lost(_stamp(self.source.file)):
            return await asyncio.to_thread(self.source.read)
        await self.reload()
        return self.settings

    def _is_lost(self, stamp: tuple[int, ...] | None) -> bool:
        """Tell whether the settings in force came from a file that is gone or empty."""
        return self._had_file and _is_empty(stamp)

    def status(self) -> Json:
        """Tell where the settings come from, and what is not in force of them."""
        waiting = [] if self._start_successor else self._waiting()
        return {
            "file": str(self.source.file),
            "error": self._error,
            "restart": waiting,
        }

    def describe_restart(self) -> Json:
        """Tell which process this is, and what a restart would do to those who ask it.

        `in_place` loses no answer; with `moves` another port is listened on afterwards.
        """
        ports = {one.server.port for one in (self.settings, self._started)}
        return {
            "instance": self.instance,
            "in_place": self._start_successor is not None,
            "moves": len(ports) > 1,
        }

    def _waiting(self) -> list[str]:
        """Return the settings that differ from those of the start and need one."""
        return [
            f"{section}.{key}"
            for section in _FIXED
            for key, value in getattr(self.settings, section)
            if value != getattr(getattr(self._started, section), key)
            and needs_restart((section, key))
        ]


def needs_restart(path: Sequence[str]) -> bool:
    """Tell whether a setting is read at the start only."""
    return path[0] in _FIXED and ".".join(path) not in _NOT_FIXED


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
