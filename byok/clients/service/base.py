"""What the service managers of all systems share: launches, files, commands, states.

A `ServiceSystem` describes the files to write and the commands to run, and reads the
output of its programs; it performs no I/O itself. `control.py` does that.
"""

import hashlib
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from byok.core.daemon.instance import Instance
from byok.core.errors import CannotStart, ConfigError
from byok.core.platform.programs import clean_environment, find_program, run_program

_MARK = "Written by byok service install"
_MARK_PATTERN = re.compile(rf"{_MARK} \(([0-9a-f]{{16}})\)")
_SLOT = re.compile(r"\{([a-z]+)\}")
_MAX_REASON_CHARS = 300
_RETRY_SECONDS = 1.0
_CODE = "service"
# Variables that systemctl needs to find the user's manager, and programs the home.
_PASSED_VARIABLES = (
    *("HOME", "USER", "LOGNAME", "USERPROFILE", "USERNAME", "USERDOMAIN"),
    *("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS"),
)


class Launch(Struct, frozen=True):
    """What a service runs: byok in this interpreter, with options and environment.

    `folders` are the absolute folders that the daemon writes to. `port` is the one that
    clients are configured for. `sandbox` says whether the system can give the service a
    file system of its own. Nothing of it is secret.
    """

    python: str
    options: tuple[str, ...]
    environment: Mapping[str, str]
    folders: tuple[Path, ...]
    port: int
    mark: str
    has_ipv6: bool = True
    sandbox: bool = True

    def __post_init__(self) -> None:
        """Check that a service file can hold all texts.

        Raises:
            ConfigError: a text has control characters, or is not valid Unicode.
        """
        texts = (*self.environment.values(), *map(str, self.folders), *self.options)
        for text in (self.python, *texts):
            if not text.isprintable():
                raise ConfigError(
                    f"{text!r} has characters that no service can be given.",
                    hint="Move byok, or its folders, to another path.",
                )

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of byok with these arguments.

        `-P` keeps Python from importing modules of the current folder.
        """
        return [self.python, "-P", "-m", "byok", *arguments, *self.options]


class ServiceFile(NamedTuple):
    """A file that byok writes for the system, and later removes."""

    path: Path
    content: str
    encoding: str = "utf-8"


class Command(Struct, frozen=True):
    """A program of the system and its arguments, run without a shell.

    `may_fail` is for a command whose failure means that there was nothing to do. A
    command is tried up to `tries` times, a second apart, for `seconds` each.
    """

    arguments: tuple[str, ...]
    may_fail: bool = False
    seconds: float = 60.0
    tries: int = 1


class CommandResult(NamedTuple):
    """The exit code of a command, and the text that it printed."""

    exit_code: int
    out: str
    err: str = ""


Run: TypeAlias = Callable[[Command], CommandResult]


class ServiceState(NamedTuple):
    """The system's state of the service; `pid` is 0 if the system does not tell it.

    `detail` is the system's own word, such as "activating". If it `waits`, the next
    request starts the service.
    """

    enabled: bool = False
    running: bool = False
    pid: int = 0
    detail: str = ""
    waits: bool = False

    def is_of(self, daemon: Instance) -> bool:
        """Tell whether a daemon is the one that the service runs."""
        return self.pid == daemon.pid if self.pid else self.running


class ServiceSystem(ABC):
    """A service manager: its files, and the commands that control the service."""

    title: str  # its name for people
    cure: str  # what to do if it does not run
    paths: tuple[Path, ...]  # the files of the service, whether they exist or not
    starts_on_request = False  # a request starts the service, also after it has ended
    kills = False  # it kills the daemon, which therefore must be asked to stop first
    # Commands whose success answers a question; None if there is nothing to ask.
    check: Command | None = None  # does the manager run?
    taken: Command | None = None  # has another service the name?
    probe: Command | None = None  # can a service get a file system of its own?
    install: tuple[Command, ...]  # loads the files, starts the service now and at login
    start: tuple[Command, ...]
    stop: tuple[Command, ...]
    restart: tuple[Command, ...]
    remove: tuple[Command, ...]  # stops it for good, before the files are removed
    forget: tuple[Command, ...] = ()  # cleans up after the files were removed
    query: tuple[Command, ...]  # asks for the state, which `read_state` reads

    @abstractmethod
    def render(self, launch: Launch) -> Sequence[ServiceFile]:
        """Return the files of the service, one for each of `paths`."""

    @abstractmethod
    def read_state(self, results: Sequence[CommandResult]) -> ServiceState:
        """Read the state from the results of the commands of `query`."""


def mark_of(state_dir: Path) -> str:
    """Return the text that marks a file as byok's, for the daemon of this folder."""
    home = hashlib.sha256(str(state_dir).encode("utf-8", "surrogateescape"))
    return f"{_MARK} ({home.hexdigest()[:16]})"


def find_mark(content: str) -> str:
    """Return the mark in the content of a file; "" if byok did not write it."""
    match = _MARK_PATTERN.search(content)
    return match[0] if match else ""


def fill(name: str, values: Mapping[str, str]) -> str:
    """Fill the {slots} of a template; remove lines that become empty by that.

    Slots within values are not filled.
    """
    folder = resources.files("byok.clients.service") / "templates"
    text = (folder / name).read_text("utf-8")
    lines = []
    for line in text.splitlines():
        filled = _SLOT.sub(lambda slot: values[slot[1]], line)
        if filled or not line:
            lines.append(filled)
    return "\n".join(lines) + "\n"


def run(command: Command) -> CommandResult:
    """Run a command, without a shell and within its time limit.

    Raises:
        CannotStart: the program is missing, takes too long, or fails and may not.
    """
    for remaining in reversed(range(command.tries)):
        result = _run_once(command)
        if result.exit_code == 0 or remaining == 0:
            break
        time.sleep(_RETRY_SECONDS)
    if result.exit_code and not command.may_fail:
        reason = (result.err.strip() or result.out.strip())[:_MAX_REASON_CHARS]
        raise CannotStart(
            f"`{' '.join(command.arguments)}` failed ({result.exit_code}): {reason}",
            code=_CODE,
            hint="If byok itself is why: byok config check, byok service logs",
        )
    return result


def _run_once(command: Command) -> CommandResult:
    name, *arguments = command.arguments
    program = find_program(name)
    if program is None:
        raise CannotStart(f"The program {name} was not found.", code=_CODE)
    try:
        result = run_program(
            [program, *arguments], service_environment(), seconds=command.seconds
        )
    except OSError as error:
        raise CannotStart(
            f"{program} cannot be run: {error.strerror}.", code=_CODE
        ) from error
    if result.was_late:
        raise CannotStart(
            f"`{' '.join(command.arguments)}` did not end within "
            f"{command.seconds:.0f} s.",
            code=_CODE,
        )
    exit_code = 0 if result.was_cut else result.exit_code
    return CommandResult(exit_code, decode_text(result.out), decode_text(result.err))


def decode_text(raw: bytes) -> str:
    """Decode the output of a program; on Windows it may begin with a BOM."""
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return raw.decode(encoding, "replace")


def service_environment() -> dict[str, str]:
    """Return the environment of the system's programs, without keys.

    A shell without a login session lacks XDG_RUNTIME_DIR, by which systemctl finds the
    user's manager; the folder is always the same.
    """
    environ = {
        name: os.environ[name] for name in _PASSED_VARIABLES if os.environ.get(name)
    }
    if hasattr(os, "getuid") and "XDG_RUNTIME_DIR" not in environ:
        folder = Path(f"/run/user/{os.getuid()}")
        if folder.is_dir():
            environ["XDG_RUNTIME_DIR"] = str(folder)
    return clean_environment(environ)
