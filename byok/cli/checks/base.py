"""What all checks share: what they look at and find (docs/reference/doctor.md)."""

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


class CheckState(StrEnum):
    """How a check ended; the value is shown to users."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    NOT_CHECKED = "not checked"


_WORST = (CheckState.FAILURE, CheckState.WARNING, CheckState.OK)


class CheckResult(Struct, frozen=True):
    """What was found, and if it is not ok, the command or setting that fixes it."""

    state: CheckState
    found: str
    cure: str = ""


class CheckRow(Struct, frozen=True):
    """A line of the report; `about` names an upstream, folder or file, "" for none."""

    check: str
    about: str
    result: CheckResult


class CannotCheck(Exception):
    """A check lacks a precondition; another check says why. The text is shown."""


def good(found: str) -> CheckResult:
    """Return that all is well."""
    return CheckResult(CheckState.OK, found)


def doubtful(found: str, cure: str) -> CheckResult:
    """Return a warning: byok works, but something is missing."""
    return CheckResult(CheckState.WARNING, found, cure)


def wrong(found: str, cure: str) -> CheckResult:
    """Return a failure: something does not work until it is fixed."""
    return CheckResult(CheckState.FAILURE, found, cure)


def skip(why: str, cure: str = "") -> CheckResult:
    """Return that nothing was checked, and why."""
    return CheckResult(CheckState.NOT_CHECKED, why, cure)


def count_states(rows: Sequence[CheckRow]) -> dict[CheckState, int]:
    """Return how many rows are in each state."""
    found = Counter(row.result.state for row in rows)
    return {state: found[state] for state in CheckState}


def worst_state(rows: Sequence[CheckRow]) -> CheckState:
    """Return the state of the whole; what was not checked does not count."""
    found = {row.result.state for row in rows}
    return next((state for state in _WORST if state in found), CheckState.OK)


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


T = TypeVar("T")
P = ParamSpec("P")
_PATIENCE = 3.0  # seconds for a daemon that is just starting


async def in_background(work: Callable[[], T], /) -> T:
    """Return what `work` returned in a thread that nobody waits for at the end.

    A lookup of a name, a keyring or a network drive may block for minutes.
    """
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[Future[T]] = loop.create_future()
    done: Future[T] = Future()

    def tell() -> None:
        if not waiting.done():  # else nobody waits any more
            waiting.set_result(done)

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # raised again where it is waited for
            done.set_exception(error)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell)

    threading.Thread(target=run, name="byok-doctor", daemon=True).start()
    return (await waiting).result()


class Machine(Struct, frozen=True):
    """What a test replaces: the home folder, and the bytes that are left on a disk."""

    home: Path = Path("~")
    free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free


class NoProof(CannotCheck):
    """A process holds the daemon's lock; it hangs, still starts, or is a stranger."""


def once(
    make: Callable[Concatenate["Surroundings", P], Awaitable[T]],
) -> Callable[Concatenate["Surroundings", P], Coroutine[Any, Any, T]]:
    """Let `make` be called for the first who asks; others wait for the same answer."""

    @wraps(make)
    async def find(around: "Surroundings", /, *args: P.args, **more: P.kwargs) -> T:
        name, tasks = (make, *args), around.tasks
        if name not in tasks:
            tasks[name] = asyncio.ensure_future(make(around, *args, **more))
        # One check that is out of time does not end what others wait for.
        return cast("T", await asyncio.shield(tasks[name]))

    return find


class Surroundings:
    """Everything that checks look at. Close it when done.

    What several checks need is asked for `once`.
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
        """Look at nothing yet; with `asks_models` each upstream is asked a question.

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
        """End what nobody waits for any more."""
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        for close in self.on_close:
            await close()

    def read_settings(self) -> Settings:
        """Read the settings, and check all that `byok serve` would refuse.

        Raises:
            ConfigError: they cannot be used.
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
            NoProof: one runs and gives no proof.
            CannotCheck: there is no secret to ask with.
        """
        return await in_background(self._find_daemon)

    def _find_daemon(self) -> Instance | None:
        """Return the daemon, if any process holds its lock; writes nothing."""
        if not (self.paths.lock.exists() and is_held(self.paths)):
            return None
        if not os.path.lexists(self.paths.owner_secret):  # it would be created
            raise CannotCheck("there is no secret to ask the daemon with")
        try:
            found = find_daemon(self.paths, _PATIENCE)
        except ConfigError as error:
            raise CannotCheck("the owner's secret cannot be used") from error
        if found is None:
            raise NoProof("a process holds the daemon's lock and does not prove itself")
        return found

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
            ByokError: its own error, or it does not know the request.
        """
        daemon = await self.daemon()
        if daemon is None:
            raise CannotCheck("no daemon runs")
        return await ask_instance(daemon, self.paths, service, {})

    async def ask_if_running(self, service: Service) -> Json | None:
        """Return an answer of the daemon; None if there is none for any reason."""
        try:
            return await self.ask(service)
        except (CannotCheck, ByokError):
            return None
