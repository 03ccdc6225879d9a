"""Control of the running daemon: reload of its settings, stop and restart."""

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
# Sections that are read at the start only: the port, the index, and the limits.
_START_SECTIONS = ("server", "limits", "context", "retrieval")
_RELOADABLE = frozenset({"retrieval.rerank"})


class Source(NamedTuple):
    """Where settings come from: `read` combines the file with all other sources.

    `check` raises if byok could not start with some settings and its options.
    `overrides` are the settings of the command line; `options` are its options, by the
    settings that they outrank, such as "routing.default".
    """

    file: Path
    read: Callable[[], Settings]
    check: Callable[[Settings], None] = check_settings
    overrides: Mapping[str, Any] = MappingProxyType({})
    options: Mapping[str, str] = MappingProxyType({})

    def validate(self, tables: Mapping[str, Any]) -> Settings:
        """Return the settings that a file with these tables would give.

        Raises:
            ConfigError: byok could not use such a file.
        """
        settings = make_settings(tables, self.file)
        if self.overrides:
            settings = make_settings(tables, self.file, self.overrides)
        self.check(settings)
        return settings


class Control:
    """Reloads the settings on request and when their file has changed; ends the daemon.

    Settings that cannot be used change nothing, and neither does a file that is deleted
    or emptied: its proxy and headers would be dropped silently. Whoever runs the daemon
    waits for `ending`. If `again` is set by then, the daemon is to be started again;
    with `on_restart`, a successor is running already.
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
        """Set the function that puts new settings into use; it raises if it cannot."""
        self._use = use

    def on_restart(self, start_successor: Callable[[], Awaitable[None]]) -> None:
        """Set the function that starts a successor; it raises if it cannot.

        From now on, changed settings that need a restart cause one.
        """
        self._start_successor = start_successor

    async def reload(self) -> None:
        """Read the settings and use them.

        Raises:
            ByokError: they cannot be used; those in force stay.
        """
        async with self._changing:
            await self._read_and_use()

    async def save(self, write: Callable[[], bool]) -> None:
        """Call `write` in a thread to change the file, then use the new settings.

        `write` returns whether it has changed the file. `follow` does not react to the
        change a second time.

        Raises:
            ByokError: the file was not written: `write` raised this, or the file is
                lost. An error in the use of written settings is in `status` instead.
        """
        async with self._changing:
            if self._is_lost(_stamp(self.source.file)):
                raise _file_gone_error(self.source.file)
            if not await asyncio.to_thread(write):
                return
            with contextlib.suppress(ByokError):  # it is logged, and in the status
                await self._read_and_use()

    async def _read_and_use(self) -> None:
        previous_stamp, self._stamp = self._stamp, _stamp(self.source.file)
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
            # The requester is gone, but `follow` should still notice the change.
            self._stamp = previous_stamp
            raise
        self._error, self.settings = "", settings
        self._had_file = not _is_empty(self._stamp)
        _log.info("the settings were read from %s", self.source.file)
        if need_restart := self._settings_needing_restart():
            self._restart_for(need_restart)

    async def follow(
        self, seconds: float, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Poll the file forever; use a change once two polls in a row see the same."""
        last_stamp = self._stamp
        while True:
            await sleep(seconds)
            stamp = _stamp(self.source.file)
            if stamp == last_stamp and stamp != self._stamp:
                try:
                    await self._use_changed_file(stamp)
                except ByokError:
                    pass  # it is logged, and in the status
                except Exception:
                    _log.exception("cannot reload the settings")
            last_stamp = stamp

    async def _use_changed_file(self, stamp: tuple[int, ...] | None) -> None:
        async with self._changing:
            if stamp != self._stamp:  # else the change was used while this one waited
                await self._read_and_use()

    def _restart_for(self, need_restart: Sequence[str]) -> None:
        """Restart for settings that only a start reads, if clients do not notice it."""
        names = ", ".join(need_restart)
        if self._start_successor is None:
            _log.warning("these settings need a restart: %s", names)
        elif self._restarting is None or self._restarting.done():
            _log.info("byok restarts for these settings: %s", names)
            self._begin_restart()

    async def stop(self, instance: str, *, again: bool) -> None:
        """End the daemon; with `again`, restart it with the same options.

        Raises:
            BadRequest: the request is for another daemon.
            ConfigError: the daemon could not start again.
            CannotStart: the start of a successor failed; this daemon goes on.
        """
        if instance != self.instance:
            raise BadRequest("This request is for another daemon.", status=422)
        if again:
            await asyncio.shield(self._begin_restart())
        else:
            self.again = False
            self.ending.set()

    async def finish_restart(self) -> None:
        """Wait for a restart that was in progress when byok was told to stop."""
        if self._restarting is not None:
            await asyncio.wait([self._restarting])

    def _begin_restart(self) -> asyncio.Task[None]:
        """Begin a restart, or return the one in progress: there is one successor.

        It goes on even if the requester leaves: another process is running by then.
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
        if not self.ending.is_set():  # else byok was told to stop meanwhile
            self.again = True
            self.ending.set()

    async def _read_for_restart(self) -> Settings:
        """Return the settings that the next start will read, defaults without a file.

        Raises:
            ByokError: they cannot be used.
        """
        if self._is_lost(_stamp(self.source.file)):
            return await asyncio.to_thread(self.source.read)
        await self.reload()
        return self.settings

    def _is_lost(self, stamp: tuple[int, ...] | None) -> bool:
        """Tell whether the file of the settings in force is now gone or empty."""
        return self._had_file and _is_empty(stamp)

    def status(self) -> Json:
        """Return where the settings come from, and which need a restart to be used."""
        need_restart = [] if self._start_successor else self._settings_needing_restart()
        return {
            "file": str(self.source.file),
            "error": self._error,
            "restart": need_restart,
        }

    def describe_restart(self) -> Json:
        """Return the id of this process, and what a restart would mean for its clients.

        A restart `in_place` loses no answer; if it `moves`, the port changes.
        """
        ports = {settings.server.port for settings in (self.settings, self._started)}
        return {
            "instance": self.instance,
            "in_place": self._start_successor is not None,
            "moves": len(ports) > 1,
        }

    def _settings_needing_restart(self) -> list[str]:
        """Return the names of changed settings that are read at the start only."""
        return [
            f"{section}.{key}"
            for section in _START_SECTIONS
            for key, value in getattr(self.settings, section)
            if value != getattr(getattr(self._started, section), key)
            and needs_restart((section, key))
        ]


def needs_restart(path: Sequence[str]) -> bool:
    """Tell whether a setting is read at the start only."""
    return path[0] in _START_SECTIONS and ".".join(path) not in _RELOADABLE


def _is_empty(stamp: tuple[int, ...] | None) -> bool:
    """Tell whether the file is missing or has no bytes."""
    return stamp is None or stamp[1] == 0


def _file_gone_error(file: Path) -> ConfigError:
    """Return the refusal to go on with the defaults: they lack proxy and headers."""
    return ConfigError(
        f"{file} is gone or empty; nothing was changed.",
        hint="Put it back, or restart byok to run without it.",
    )


def _stamp(file: Path) -> tuple[int, ...] | None:
    """Return numbers that change with the file; None if it cannot be accessed."""
    try:
        facts = file.stat()
    except OSError:
        return None
    # ctime changes with the permissions, whose change may have made it readable.
    return facts.st_mtime_ns, facts.st_size, facts.st_ino, facts.st_ctime_ns
