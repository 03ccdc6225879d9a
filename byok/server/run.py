"""The daemon: bind the port, load, serve, stop in order."""

import asyncio
import contextlib
import gc
import logging
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import import_module
from socket import socket
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import orjson
from msgspec import Struct

from byok.core.daemon.challenge import answer_challenge, derive_owner_token
from byok.core.daemon.instance import (
    CAN_HAND_OVER,
    Predecessor,
    Successor,
    start_successor,
)
from byok.core.daemon.logs import set_level
from byok.core.daemon.sockets import Activation, Notifier, listen, max_connections
from byok.core.daemon.token import TokenCheck, renew_token
from byok.core.errors import ByokError
from byok.core.platform.paths import Paths
from byok.core.record import Observer, Observers
from byok.core.redact import Redactor
from byok.features.base import Site
from byok.features.running import Features, start_features
from byok.server.admission import Gate
from byok.server.app import AccessLog, App
from byok.server.control import Control, Source
from byok.server.dashboard.endpoint import DashboardEndpoint
from byok.server.dashboard.sessions import SessionFile, Sessions
from byok.server.http.deadlines import Timing
from byok.server.http.guard import Guard
from byok.server.http.protocol import HttpServer, serve_http
from byok.settings import Settings

if TYPE_CHECKING:
    from byok.wiring.services import Services


OpenServices: TypeAlias = Callable[[], AbstractAsyncContextManager["Services"]]
_log = logging.getLogger(__name__)
_POLL_SECONDS = 0.02
_COMPOSE = "byok.server.compose"  # imports the hundred modules of requests


class DaemonParts(NamedTuple):
    """What a daemon is made of: settings, paths, redactor, and how to open services."""

    settings: Settings
    paths: Paths
    redactor: Redactor
    open_services: OpenServices


class Daemon:
    """A running daemon: it listens, and can reload, stop, or hand over to another."""

    def __init__(
        self,
        front: "_EarlyParts",
        control: Control,
        services: "Services",
        accept_no_more: Callable[[], Awaitable[None]],
    ) -> None:
        from byok.server.compose import Composer  # late: the port opens sooner

        self.services = services
        self.control = control
        self.timing = front.app.timing
        self.port = front.port
        self.instance = front.instance
        self.sessions = front.dashboard.sessions
        self._front = front
        self._accept_no_more = accept_no_more
        self._composer = Composer(
            front.app, front.dashboard, front.features, control, front.clock
        )
        self._composer.open(services)

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self.port}"

    async def use(self, settings: Settings) -> None:
        """Use new settings for new requests; answers in progress keep the old ones.

        Raises:
            ConfigError: the settings cannot be used.
        """
        self.services = await self.services.renew(settings)
        set_level(settings.log.level)
        self._composer.open(self.services)
        default, reason = self.services.router.default(), self.services.selection.reason
        _log.info("the default model is now %s (%s)", default.id, reason)

    async def reload(self) -> None:
        """Reload settings and keys.

        Raises:
            ByokError: the settings cannot be used; those in force stay.
        """
        self.services.forget_keys()
        await self.control.reload()

    async def stop(self) -> None:
        """Accept no connections; wait for streams, then end them with a last line."""
        await self._accept_no_more()
        self._front.features.stop()
        await self._front.app.gate.stop(self.timing.grace)

    async def end_streams(self) -> None:
        """End every stream with a last line now."""
        await self._front.app.gate.stop(0)

    def copy_sockets(self) -> list[socket]:
        """Return duplicates of the listening sockets, for another process."""
        return [sock.dup() for sock in self._front.sockets]

    async def release(self) -> None:
        """Accept no more connections, and close the files that one process may open.

        Answers of models go on: their code was retrieved before the model was asked.
        """
        await self._accept_no_more()
        self._front.server.end_connections()
        self._front.features.stop()
        app = self._front.app
        await _wait_until(
            lambda: app.requests <= app.gate.answering, self.timing.settle
        )
        await self.services.context.give_up()

    async def count_predecessor(self) -> None:
        """Let features count what the predecessor wrote before it ended."""
        await self._front.features.count_predecessor(self.timing.settle)

    async def finish_answers(self) -> None:
        """Wait for the answers in progress; end those that take too long."""
        server = self._front.server
        await _wait_until(
            lambda: not server.expects_requests, self.timing.first_request
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.timing.drain):
                await self._front.app.wait_until_idle()
        await self._front.app.gate.stop(0)


async def _wait_until(holds: Callable[[], bool], seconds: float) -> None:
    for _ in range(round(seconds / _POLL_SECONDS)):
        if holds():
            return
        await asyncio.sleep(_POLL_SECONDS)


class _EarlyParts(Struct, frozen=True):
    """The parts that exist before the services are open, and outlive a reload."""

    clock: Callable[[], float]
    features: Features
    app: App
    dashboard: DashboardEndpoint
    server: HttpServer
    sockets: list[socket]
    port: int
    instance: str


@asynccontextmanager
async def listening(
    parts: DaemonParts,
    timing: Timing | None = None,
    source: Source | None = None,
    observers: Sequence[Observer] = (),
    inherited: Sequence[socket] = (),
    *,
    clock: Callable[[], float] = time.time,
) -> AsyncIterator[Daemon]:
    """Serve until the block ends; `source` is where settings are reloaded from.

    The access log, features and `observers` see every request. The port is opened
    first, so that /health is answered while everything else is loaded and opened;
    requests that arrive meanwhile wait. `inherited` are sockets of another process.

    Raises:
        CannotStart: the port cannot be opened.
        ConfigError: the token file is not private, or the services cannot be opened.
    """
    settings, paths, redactor, open_services = parts
    limits, timing = settings.limits, timing or Timing()
    gate = Gate(limits.streams, limits.waiting, limits.wait_seconds)
    site = Site(paths, redactor, clock, gate)
    log = AccessLog()
    front = _make_front(settings, site, gate, timing, inherited, (log, *observers))
    features, source = front.features, source or Source(paths.config, lambda: settings)
    async with (
        AsyncExitStack() as opened,
        serve_http(
            front.server, front.sockets, timing.last_words / 2
        ) as accept_no_more,
    ):
        opened.callback(log.write)
        opened.push_async_callback(asyncio.to_thread, features.close)
        try:
            await asyncio.to_thread(import_module, _COMPOSE)
            services = await opened.enter_async_context(open_services())
            control = Control(source, settings, front.instance)
            daemon = Daemon(front, control, services, accept_no_more)
            control.on_change(daemon.use)
            yield daemon
        finally:
            features.stop()
            front.app.close()
            front.dashboard.close()


def _make_front(
    settings: Settings,
    site: Site,
    gate: Gate,
    timing: Timing,
    inherited: Sequence[socket],
    observers: Sequence[Observer],
) -> _EarlyParts:
    """Bind the port, and build the parts that check and record requests."""
    paths, limits, add_secret = site.paths, settings.limits, site.redactor.add
    features = start_features(site)
    token = TokenCheck(paths.token, add_secret)
    renew_token(paths.owner_secret)  # no client stores it, so each start may change it
    connections = max_connections(limits.connections)
    sockets = listen(settings.server.port, inherited)
    port: int = sockets[0].getsockname()[1]
    instance = secrets.token_hex(8)
    owner = TokenCheck(
        paths.owner_secret,
        add_secret,
        lambda secret: derive_owner_token(secret, port, instance),
    )
    guard = Guard(token, owner, port)
    sessions = Sessions(file=SessionFile(paths.dashboard_sessions))
    dashboard = DashboardEndpoint(guard, sessions=sessions, body_gap=timing.body_gap)
    app = App(
        guard,
        gate,
        site.redactor,
        Observers([*features.observers, *observers]),
        prove=lambda body: answer_challenge(body, owner.token, port, instance),
        features=features,
        dashboard=dashboard,
        timing=timing,
    )
    server = HttpServer(app, connections, timing.head, timing.patience)
    return _EarlyParts(
        site.clock, features, app, dashboard, server, sockets, port, instance
    )


class Serving:
    """Serves in one daemon process until a signal or a request ends it.

    Afterwards, `successor` is the process that has taken over, if there is one; else
    `again` tells whether the daemon is to be started again.
    """

    def __init__(
        self,
        activation: Activation | None,
        predecessor: Predecessor | None,
        *,
        release_lock: Callable[[], None],
    ) -> None:
        """Prepare; `release_lock` is called to let a successor become the daemon."""
        self._activation = activation or Activation()
        self._predecessor = predecessor
        self._release_lock = release_lock
        self._has_fixed_port = bool(self._activation.sockets) or (
            predecessor is not None and predecessor.has_fixed_port
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop_now = asyncio.Event()
        self.successor: Successor | None = None
        self.again = False

    async def run(
        self,
        serve: Callable[[Sequence[socket]], AbstractAsyncContextManager[Daemon]],
        on_ready: Callable[[Daemon], None],
    ) -> None:
        """Serve until SIGTERM, SIGINT or `byok stop`; a second signal stops at once.

        SIGHUP reloads settings and keys; a change of the settings' file reloads the
        settings. The service manager is notified. Until `on_ready`, signals have their
        default effect: nothing has begun that they could break.
        """
        notifier = self._activation.notifier
        inherited = (self._predecessor or self._activation).sockets
        async with serve(inherited) as daemon:
            control = daemon.control
            self._start_task(control.follow(daemon.timing.look))
            if CAN_HAND_OVER:
                control.on_restart(lambda: self._start_successor(daemon))
            self._take_over(daemon)
            self._handle_signals(daemon)
            gc.freeze()  # later collections need not search the objects of the start
            gc.enable()
            # Code closes its generators itself, so the loop need not track them.
            sys.set_asyncgen_hooks(firstiter=None)
            on_ready(daemon)
            notifier.ready(f"listening on {daemon.url}")
            await control.ending.wait()
            self.again = control.again and self.successor is None
            await self._end(daemon)
            await control.finish_restart()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take_over(self, daemon: Daemon) -> None:
        """Take over the predecessor's sessions, and act when it ends."""
        if (predecessor := self._predecessor) is None:
            return
        with contextlib.suppress(orjson.JSONDecodeError):  # if it has ended already
            daemon.sessions.adopt(orjson.loads(predecessor.state))
        predecessor.on_end(lambda: self._start_task(daemon.count_predecessor()))

    async def _end(self, daemon: Daemon) -> None:
        notifier = self._activation.notifier
        if self.successor is None:
            _log.info("stopping")
            (notifier.reloading if self.again else notifier.stopping)()
            await self._run_until_stop_now(daemon, daemon.stop())
            return
        notifier.handing_over(self.successor.pid)
        await daemon.release()
        self._release_lock()
        self.successor.give_turn(orjson.dumps(daemon.sessions.export()))
        _log.info("process %d serves from now on", self.successor.pid)
        await self._run_until_stop_now(daemon, daemon.finish_answers())

    async def _run_until_stop_now(
        self, daemon: Daemon, ending: Coroutine[None, None, None]
    ) -> None:
        """Wait until streams have ended; hurry them if a second signal comes."""
        stop = asyncio.ensure_future(ending)
        hurry = asyncio.ensure_future(self._stop_now.wait())
        await asyncio.wait({stop, hurry}, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if stop.done():
            stop.result()
        stop.cancel()
        await asyncio.gather(stop, hurry, return_exceptions=True)
        if self._stop_now.is_set():
            await daemon.end_streams()

    async def _start_successor(self, daemon: Daemon) -> None:
        sockets = daemon.copy_sockets()
        try:
            successor = await asyncio.to_thread(
                start_successor,
                sockets,
                self._activation.variables,
                has_fixed_port=self._has_fixed_port,
            )
        finally:
            for sock in sockets:
                sock.close()
        if daemon.control.ending.is_set():
            successor.end()  # byok was told to stop, so nothing may take its place
        else:
            self.successor = successor

    def _handle_signals(self, daemon: Daemon) -> None:
        ending = daemon.control.ending

        def stop(number: signal.Signals) -> None:
            is_second = ending.is_set()
            (self._stop_now if is_second else ending).set()
            # A successor gets SIGINT from the terminal itself, and any signal from a
            # service manager, which knows its process id.
            is_alone = not self._activation.notify and number is signal.SIGTERM
            if self.successor is not None and is_alone:
                self.successor.send_signal(number)

        def reload() -> None:
            if not ending.is_set():
                self._start_task(_reload(daemon, self._activation.notifier))

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError):  # Windows: KeyboardInterrupt
                loop.add_signal_handler(number, stop, number)
        if hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, reload)

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _reload(daemon: Daemon, notifier: Notifier) -> None:
    notifier.reloading()
    with contextlib.suppress(ByokError):  # it is logged, and in the status
        await daemon.reload()
    notifier.ready()
