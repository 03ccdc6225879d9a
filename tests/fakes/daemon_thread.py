"""A daemon in a thread of the test, which commands find as they find the real one."""

import asyncio
import contextlib
import http.client
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from byok.core.daemon.instance import only_instance, write_record
from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from byok.core.redact import Redactor
from byok.server.control import Source
from byok.server.http.deadlines import Timing
from byok.server.run import Daemon, listening
from byok.settings import Settings, check_settings, load_settings
from byok.settings.keys import KeyLadder
from byok.wiring.services import open_services
from tests.fakes.daemon import QUICK


@contextmanager
def daemon_thread(
    *roots: Path,
    upstream: str = "demo",
    model: str = "",
    environ: Mapping[str, str] | None = None,
    timing: Timing = QUICK,
) -> Iterator[Daemon]:
    """Hold the lock, be recorded, serve until the block ends or a command ends it.

    It takes settings as `byok serve` does; `environ` is where it looks for keys.
    """
    paths, redactor = find_paths(), Redactor()
    ladder = KeyLadder(environ=environ or {})

    def load() -> Settings:
        return load_settings(paths.config, {"server": {"port": 0}})

    settings = load()
    source = Source(
        paths.config, load, lambda new: check_settings(new, upstream, model)
    )
    ready = SimpleQueue[tuple[Daemon, asyncio.AbstractEventLoop] | None]()

    async def serve() -> None:
        services = open_services(
            settings,
            paths,
            upstream=upstream,
            model=model,
            ladder=ladder,
            redactor=redactor,
            roots=roots,
        )
        opening = listening(settings, paths, redactor, lambda: services, timing, source)
        async with opening as daemon:
            write_record(paths, daemon.port, daemon.instance)
            following = asyncio.ensure_future(daemon.control.follow(timing.look))
            ready.put((daemon, asyncio.get_running_loop()))
            await daemon.control.ending.wait()
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
            await daemon.stop()

    def run() -> None:
        try:
            with only_instance(paths):
                asyncio.run(serve())
        finally:
            ready.put(None)

    with ThreadPoolExecutor(1) as pool:
        served = pool.submit(run)
        started = ready.get()
        if started is None:
            served.result()
            raise AssertionError("it ended before it was ready")
        daemon, loop = started
        try:
            yield daemon
        finally:
            with contextlib.suppress(RuntimeError):  # it has ended already
                loop.call_soon_threadsafe(daemon.control.ending.set)
            served.result()


def ask_chat(daemon: Daemon, text: str) -> str:
    """Ask for a chat; return the id of the request."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port)
    headers = {
        "Authorization": f"Bearer {read_token(find_paths().token)}",
        "Content-Type": "application/json",
    }
    body = json.dumps({"message": text})
    connection.request("POST", "/chat-stream?key=hidden-value", body, headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.headers["X-Request-Id"]
