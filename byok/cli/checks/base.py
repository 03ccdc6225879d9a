"""What the checks of `byok doctor` share: their context and their results.

docs/reference/doctor.md describes the checks.
"""

import asyncio
import contextlib
import os
import shutil
import threading
from collections import Counter
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from msgspec import Struct, to_builtins

from byok import __version__
from byok.cli.command_context import find_config
from byok.cli.daemon_client import ask_instance, find_daemon
from byok.core.chat import Json
from byok.core.daemon.instance import Instance, is_held
from byok.core.errors import ByokError, ConfigError
from byok.core.platform.paths import Paths
from byok.core.redact import Redactor
from byok.core.routing import Service
from byok.settings import Settings, check_settings, load_settings

SCHEMA = 1
T = TypeVar("T")
P = ParamSpec("P")
_START_SECONDS = 3.0  # for a daemon that is just starting


class CheckState(StrEnum):
    """How a check ended; the value is shown to users."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    NOT_CHECKED = "not checked"


_WORST = (CheckState.FAILURE, CheckState.WARNING, CheckState.OK)


class CheckResult(Struct, frozen=True):
    """What was found; `cure` is the command or setting that fixes a problem."""

    state: CheckState
    found: str
    cure: str = ""


class CheckRow(Struct, frozen=True):
    """A row of the report; `about` names an upstream, a folder or a file, or is ""."""

    check: str
    about: str
    result: CheckResult


class CannotCheck(Exception):
    """A check lacks a precondition, which another check reports; the text is shown."""


def good(finding: str) -> CheckResult:
    """Return the result of a check that found no problem."""
    return CheckResult(CheckState.OK, finding)


def doubtful(finding: str, cure: str) -> CheckResult:
    """Return a warning: byok works, but something is missing."""
    return CheckResult(CheckState.WARNING, finding, cure)


def wrong(finding: str, cure: str) -> CheckResult:
    """Return a failure: something does not work until it is fixed."""
    return CheckResult(CheckState.FAILURE, finding, cure)


def skip(reason: str, cure: str = "") -> CheckResult:
    """Return the result of a check that could not run, with the reason."""
    return CheckResult(CheckState.NOT_CHECKED, reason, cure)


def count_states(rows: Sequence[CheckRow]) -> dict[CheckState, int]:
    """Return how many rows are in each state."""
    counts = Counter(row.result.state for row in rows)
    return {state: counts[state] for state in CheckState}


def worst_state(rows: Sequence[CheckRow]) -> CheckState:
    """Return the worst state of all rows; those that were not checked do not count."""
    states = {row.result.state for row in rows}
    return next((state for state in _WORST if state in states), CheckState.OK)


def write_report(rows: Sequence[CheckRow]) -> Json:
    """Return the report as JSON."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "state": worst_state(rows).value,
        "counts": {state.value: count for state, count in count_states(rows).items()},
        "checks": [
            {"check": row.check, "about": row.about, **to_builtins(row.result)}
            for row in rows
        ],
    }


async def in_background(work: Callable[[], T], /) -> T:
    """Run `work` in a daemon thread, which does not delay the end of the process.

    A DNS lookup, a keyring or a network drive may block it for minutes.
    """
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[Future[T]] = loop.create_future()
    outcome: Future[T] = Future()

    def finish() -> None:
        if not finished.done():  # it is if the waiting task was cancelled
            finished.set_result(outcome)

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # raised again by `outcome.result()`
            outcome.set_exception(error)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finish)

    threading.Thread(target=run, name="byok-doctor", daemon=True).start()
    return (await finished).result()


class Machine(Struct, frozen=True):
    """The home folder, and the free bytes of a disk; tests replace them."""

    home: Path = Path("~")
    free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free


class NoProof(CannotCheck):
    """A process holds the daemon's lock; it hangs, still starts, or is a stranger."""


def once(
    make: Callable[Concatenate["CheckContext", P], Awaitable[T]],
) -> Callable[Concatenate["CheckContext", P], Coroutine[Any, Any, T]]:
    """Run `make` once for a context and arguments; all callers await the same task."""

    @wraps(make)
    async def find(context: "CheckContext", /, *args: P.args, **kwargs: P.kwargs) -> T:
        key, tasks = (make, *args), context.tasks
        if key not in tasks:
            tasks[key] = asyncio.ensure_future(make(context, *args, **kwargs))
        # A check that times out must not cancel the task that other checks await.
        return cast("T", await asyncio.shield(tasks[key]))

    return find


class CheckContext:
    """The paths, settings and daemon that checks inspect, each read `once`.

    Close it after the last check.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        config: Path | None = None,
        environ: Mapping[str, str] = os.environ,
        machine: Machine | None = None,
        asks_models: bool = False,
    ) -> None:
        """Read nothing yet; with `asks_models`, checks question each upstream's model.

        Raises:
            ConfigError: the user names a settings file that does not exist.
        """
        self.paths = paths
        self.config = find_config(config, paths)
        self.environ = environ
        self.machine = machine or Machine(home=Path("~").expanduser())
        self.asks_models = asks_models
        self.redactor = Redactor()
        self.tasks: dict[Hashable, asyncio.Future[Any]] = {}
        self.on_close: list[Callable[[], Awaitable[None]]] = []

    async def close(self) -> None:
        """Cancel the tasks that still run, and close what checks have opened."""
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        for close in self.on_close:
            await close()

    def read_settings(self) -> Settings:
        """Read the settings, and validate them as `byok serve` does.

        Raises:
            ConfigError: `byok serve` would refuse them.
        """
        settings = load_settings(self.config, environ=self.environ)
        check_settings(settings)
        return settings

    @once
    async def settings(self) -> Settings:
        """Return the settings.

        Raises:
            CannotCheck: they cannot be used.
        """
        try:
            return await in_background(self.read_settings)
        except ConfigError as error:
            raise CannotCheck("the settings cannot be used") from error

    @once
    async def daemon(self) -> Instance | None:
        """Return the daemon that proved to be this user's; None if none runs.

        Raises:
            NoProof: one runs and fails the challenge.
            CannotCheck: the owner's secret, which the challenge needs, is missing.
        """
        return await in_background(self._find_daemon)

    def _find_daemon(self) -> Instance | None:
        """Return the daemon if a process holds its lock, without creating a file."""
        if not (self.paths.lock.exists() and is_held(self.paths)):
            return None
        if not os.path.lexists(self.paths.owner_secret):  # `find_daemon` would make it
            raise CannotCheck("there is no secret to ask the daemon with")
        try:
            daemon = find_daemon(self.paths, _START_SECONDS)
        except ConfigError as error:
            raise CannotCheck("the owner's secret cannot be used") from error
        if daemon is None:
            raise NoProof("a process holds the daemon's lock and does not prove itself")
        return daemon

    async def running(self) -> Instance | None:
        """Return the daemon if one runs and proves to be this user's."""
        try:
            return await self.daemon()
        except CannotCheck:
            return None

    @once
    async def ask(self, service: Service) -> Json:
        """Return an answer of the running daemon.

        Raises:
            CannotCheck: none runs.
            ByokError: the daemon answered with an error, or does not know the request.
        """
        daemon = await self.daemon()
        if daemon is None:
            raise CannotCheck("no daemon runs")
        return await ask_instance(daemon, self.paths, service, {})

    async def ask_if_running(self, service: Service) -> Json | None:
        """Return an answer of the daemon; None if it gives none, for any reason."""
        try:
            return await self.ask(service)
        except (CannotCheck, ByokError):
            return None
