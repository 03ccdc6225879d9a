"""Serve until a signal or a request ends the daemon, in the order that clients need."""

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import Callable

from byok.config import Settings
from byok.daemon.activation import Activation
from byok.daemon.notify import Notifier
from byok.errors import ByokError
from byok.platform.paths import Paths
from byok.redact import Redactor
from byok.server.control import Source
from byok.server.http.deadlines import Timing
from byok.server.run import Daemon, OpenServices, listening

_log = logging.getLogger(__name__)


async def run_until_signal(
    settings: Settings,
    paths: Paths,
    redactor: Redactor,
    open_services: OpenServices,
    on_ready: Callable[[Daemon], None],
    source: Source | None = None,
    timing: Timing | None = None,
    activation: Activation | None = None,
) -> bool:
    """Serve until SIGTERM, SIGINT or `byok stop`; a second signal stops at once.

    SIGHUP lets settings and keys be read anew, a changed file of settings the settings.
    The service manager of the `activation` is told.
    Until `on_ready` a signal does what it does to any program: nothing has begun that
    it could break. True means that the daemon is to be started again.
    """
    timing = timing or Timing()
    activation = activation or Activation()
    notifier, passed = activation.notifier, activation.sockets
    parts = (settings, paths, redactor, open_services, timing, source)
    async with listening(*parts, passed=passed) as daemon:
        ending, at_once = daemon.control.ending, asyncio.Event()
        tasks = {asyncio.ensure_future(daemon.control.follow(timing.look))}

        def stop() -> None:
            (at_once if ending.is_set() else ending).set()

        def reload() -> None:
            task = asyncio.ensure_future(_reload(daemon, notifier))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        _handle_signals(stop, reload)
        gc.collect()
        gc.freeze()
        gc.enable()
        on_ready(daemon)
        notifier.ready(f"listening on {daemon.url}")
        await ending.wait()
        _log.info("stopping")
        (notifier.reloading if daemon.control.again else notifier.stopping)()
        for task in (left := [*tasks]):
            task.cancel()
        await _stop(daemon, at_once)
        await asyncio.gather(*left, return_exceptions=True)
        return daemon.control.again


def _handle_signals(stop: Callable[[], None], reload: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows: KeyboardInterrupt
            loop.add_signal_handler(number, stop)
    if hasattr(signal, "SIGHUP"):
        loop.add_signal_handler(signal.SIGHUP, reload)


async def _stop(daemon: Daemon, at_once: asyncio.Event) -> None:
    """Let streams end in their time, or at once when that is asked for."""
    stop = asyncio.ensure_future(daemon.stop())
    hurry = asyncio.ensure_future(at_once.wait())
    await asyncio.wait({stop, hurry}, return_when=asyncio.FIRST_COMPLETED)
    hurry.cancel()
    if stop.done():
        stop.result()
    stop.cancel()
    await asyncio.gather(stop, hurry, return_exceptions=True)
    if at_once.is_set():
        await daemon.hurry()


async def _reload(daemon: Daemon, notifier: Notifier) -> None:
    notifier.reloading()
    with contextlib.suppress(ByokError):  # it is logged, and told by the status
        await daemon.reload()
    notifier.ready()
