"""Serve until a signal or a request ends the daemon, in the order that clients need."""

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import Callable, Coroutine, Sequence
from socket import socket

import orjson

from byok.config import Settings
from byok.daemon.activation import Activation
from byok.daemon.handover import (
    CAN_HAND_OVER,
    Predecessor,
    Successor,
    start_successor,
)
from byok.daemon.notify import Notifier
from byok.errors import ByokError
from byok.platform.paths import Paths
from byok.redact import Redactor
from byok.server.control import Source
from byok.server.http.deadlines import Timing
from byok.server.run import Daemon, OpenServices, listening

_log = logging.getLogger(__name__)


class Serving:
    """One daemon process from its start to its end, and what comes after it.

    `successor` is the process that has taken over, if there is one; else `again` tells
    whether the daemon is to be started again.
    """

    def __init__(
        self,
        activation: Activation | None = None,
        predecessor: Predecessor | None = None,
        *,
        release_lock: Callable[[], None] = lambda: None,
    ) -> None:
        """Take what was passed; `release_lock` lets a successor be the daemon."""
        self._activation = activation or Activation()
        self._predecessor = predecessor
        self._release_lock = release_lock
        self._has_fixed_port = bool(self._activation.sockets) or (
            predecessor is not None and predecessor.has_fixed_port
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._at_once = asyncio.Event()
        self.successor: Successor | None = None
        self.again = False

    async def run(
        self,
        settings: Settings,
        paths: Paths,
        redactor: Redactor,
        open_services: OpenServices,
        on_ready: Callable[[Daemon], None],
        source: Source | None = None,
        timing: Timing | None = None,
    ) -> None:
        """Serve until SIGTERM, SIGINT or `byok stop`; a second signal stops at once.

        SIGHUP lets settings and keys be read anew, a changed file of settings the
        settings. The service manager is told. Until `on_ready` a signal does what it
        does to any program: nothing has begun that it could break.
        """
        timing = timing or Timing()
        notifier = self._activation.notifier
        parts = (settings, paths, redactor, open_services, timing, source)
        async with listening(*parts, passed=self._passed_sockets()) as daemon:
            control = daemon.control
            self._begin(control.follow(timing.look))
            if CAN_HAND_OVER:
                control.on_restart(lambda: self._start_successor(daemon))
            self._follow(daemon)
            self._handle_signals(daemon)
            gc.collect()
            gc.freeze()
            gc.enable()
            on_ready(daemon)
            notifier.ready(f"listening on {daemon.url}")
            await control.ending.wait()
            self.again = control.again and self.successor is None
            await self._end(daemon)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _passed_sockets(self) -> Sequence[socket]:
        if self._predecessor is not None:
            return self._predecessor.sockets
        return self._activation.sockets

    def _follow(self, daemon: Daemon) -> None:
        """Take over the sessions of the process before, and notice its end."""
        if (before := self._predecessor) is None:
            return
        with contextlib.suppress(orjson.JSONDecodeError):  # it has ended already
            daemon.sessions.adopt(orjson.loads(before.state))
        before.on_end(lambda: self._begin(daemon.follow_predecessor()))

    async def _end(self, daemon: Daemon) -> None:
        notifier = self._activation.notifier
        if self.successor is None:
            _log.info("stopping")
            (notifier.reloading if self.again else notifier.stopping)()
            await self._unless_at_once(daemon, daemon.stop())
            return
        notifier.handing_over(self.successor.pid)
        await daemon.release()
        self._release_lock()
        self.successor.give_turn(orjson.dumps(daemon.sessions.export()))
        _log.info("process %d serves from now on", self.successor.pid)
        await self._unless_at_once(daemon, daemon.finish_answers())

    async def _unless_at_once(
        self, daemon: Daemon, ending: Coroutine[None, None, None]
    ) -> None:
        """Let streams end in their time, or at once when that is asked for."""
        stop = asyncio.ensure_future(ending)
        hurry = asyncio.ensure_future(self._at_once.wait())
        await asyncio.wait({stop, hurry}, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if stop.done():
            stop.result()
        stop.cancel()
        await asyncio.gather(stop, hurry, return_exceptions=True)
        if self._at_once.is_set():
            await daemon.hurry()

    async def _start_successor(self, daemon: Daemon) -> None:
        sockets = daemon.copy_sockets()
        try:
            self.successor = await asyncio.to_thread(
                start_successor,
                sockets,
                self._activation.variables,
                has_fixed_port=self._has_fixed_port,
            )
        finally:
            for sock in sockets:
                sock.close()

    def _handle_signals(self, daemon: Daemon) -> None:
        ending = daemon.control.ending

        def stop(number: signal.Signals) -> None:
            is_second = ending.is_set()
            (self._at_once if is_second else ending).set()
            # A terminal sends SIGINT to both; a service manager knows the successor.
            is_alone = not self._activation.notify and number is signal.SIGTERM
            if self.successor is not None and is_alone:
                self.successor.send_signal(number)

        def reload() -> None:
            if not ending.is_set():
                self._begin(_reload(daemon, self._activation.notifier))

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError):  # Windows: KeyboardInterrupt
                loop.add_signal_handler(number, stop, number)
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, reload)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _reload(daemon: Daemon, notifier: Notifier) -> None:
    notifier.reloading()
    with contextlib.suppress(ByokError):  # it is logged, and told by the status
        await daemon.reload()
    notifier.ready()
