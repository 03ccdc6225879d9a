"""What services of all systems share: what is to run, files, commands, states.

A system describes what to write and what to run, and reads what its programs print; it
performs no I/O itself. `control.py` carries it out.
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
_FOUND = re.compile(rf"{_MARK} \(([0-9a-f]{{16}})\)")


class Launch(Struct, frozen=True):
    """What a service runs: the interpreter and the package that installed it.

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
        """Refuse what no file of a service can hold.

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
        """Return the program with these arguments of byok.

        `-P` keeps Python from importing modules of the current folder.
        """
        return [self.python, "-P", "-m", "byok", *arguments, *self.options]


class ServiceFile(NamedTuple):
    """A file that byok writes for the system, and removes again."""

    path: Path
    content: str
    encoding: str = "utf-8"


class Command(Struct, frozen=True):
    """A program of the system and its arguments; none is run by a shell.

    `may_fail` if its failure says that there was nothing to do. It is tried `tries`
    times, a second apart.
    """

    arguments: tuple[str, ...]
    may_fail: bool = False
    seconds: float = 60.0
    tries: int = 1


class CommandResult(NamedTuple):
    """What a command printed, and its exit code."""

    exit_code: int
    out: str
    err: str = ""


class ServiceState(NamedTuple):
    """What the system says of the service; `pid` is 0 where it does not say it.

    `detail` is the system's own word, such as "activating". If it `waits`, the next
    request starts the service.
    """

    enabled: bool = False
    running: bool = False
    pid: int = 0
    detail: str = ""
    waits: bool = False

    def is_of(self, daemon: Instance) -> bool:
        """Tell whether a daemon is the one of the service in this state."""
        return self.pid == daemon.pid if self.pid else self.running


class ServiceSystem(ABC):
    """A system's way to keep programs running."""

    title: str  # its name for people
    cure: str  # what to do if it does not run
    paths: tuple[Path, ...]  # the files of the service, whether they exist or not
    starts_on_request = False  # a request starts the service, also after its end
    kills = False  # it ends the daemon without a word: that has to be asked before
    # Each shows something by its success; None where there is nothing to ask.
    check: Command | None = None  # it runs at all
    taken: Command | None = None  # somebody else's service may have the name
    probe: Command | None = None  # it can give a service a file system of its own
    # The first takes the written files, too, and starts the service at login.
    install: tuple[Command, ...]
    start: tuple[Command, ...]
    stop: tuple[Command, ...]
    restart: tuple[Command, ...]
    remove: tuple[Command, ...]  # stops it for good; then the files are removed
    forget: tuple[Command, ...] = ()  # what comes after that
    query: tuple[Command, ...]  # asks for the state, which `read_state` reads

    @abstractmethod
    def render(self, launch: Launch) -> Sequence[ServiceFile]:
        """Return the files, one for each of `paths`."""

    @abstractmethod
    def read_state(self, results: Sequence[CommandResult]) -> ServiceState:
        """Read what the commands of `query` printed."""


def mark_of(state_dir: Path) -> str:
    """Return the line by which byok knows its own file, and whose daemon it starts."""
    home = hashlib.sha256(str(state_dir).encode("utf-8", "surrogateescape"))
    return f"{_MARK} ({home.hexdigest()[:16]})"


def find_mark(content: str) -> str:
    """Return the mark in the content of a file; "" if byok did not write it."""
    found = _FOUND.search(content)
    return found[0] if found else ""


# The templates of files; each place has a name in braces, and is filled by code.


_PLACE = re.compile(r"\{([a-z]+)\}")


def fill(name: str, values: Mapping[str, str]) -> str:
    """Return a template with its places filled; a line that is left empty goes.

    A value is never searched for places of its own.
    """
    folder = resources.files("byok.clients.service") / "templates"
    text = (folder / name).read_text("utf-8")
    lines = []
    for line in text.splitlines():
        filled = _PLACE.sub(lambda place: values[place[1]], line)
        if filled or not line:
            lines.append(filled)
    return "\n".join(lines) + "\n"


# Run the programs of the system, without a shell and within limits.


Run: TypeAlias = Callable[[Command], CommandResult]
_LONGEST_REASON = 300
_PAUSE = 1.0
_CODE = "service"
# What systemctl needs to find the user's manager, and programs to find home and name.
_KEPT = (
    *("HOME", "USER", "LOGNAME", "USERPROFILE", "USERNAME", "USERDOMAIN"),
    *("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS"),
)


def run(command: Command) -> CommandResult:
    """Run a command and return what it said.

    Raises:
        CannotStart: the program is missing, takes too long, or fails and may not.
    """
    for left in reversed(range(command.tries)):
        result = _run_once(command)
        if result.exit_code == 0 or left == 0:
            break
        time.sleep(_PAUSE)
    if result.exit_code and not command.may_fail:
        reason = (result.err.strip() or result.out.strip())[:_LONGEST_REASON]
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
        ended = run_program(
            [program, *arguments], service_environment(), seconds=command.seconds
        )
    except OSError as error:
        raise CannotStart(
            f"{program} cannot be run: {error.strerror}.", code=_CODE
        ) from error
    if ended.was_late:
        raise CannotStart(
            f"`{' '.join(command.arguments)}` did not end within "
            f"{command.seconds:.0f} s.",
            code=_CODE,
        )
    exit_code = 0 if ended.was_cut else ended.exit_code
    return CommandResult(exit_code, decode_text(ended.out), decode_text(ended.err))


def decode_text(raw: bytes) -> str:
    """Decode what a program wrote; on Windows it may begin with a mark."""
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    return raw.decode(encoding, "replace")


def service_environment() -> dict[str, str]:
    """Return the environment of such programs, without keys and other variables.

    A shell without a login session lacks the address of the user's manager, which is
    always in the same folder.
    """
    kept = {name: os.environ[name] for name in _KEPT if os.environ.get(name)}
    if hasattr(os, "getuid") and "XDG_RUNTIME_DIR" not in kept:
        folder = Path(f"/run/user/{os.getuid()}")
        if folder.is_dir():
            kept["XDG_RUNTIME_DIR"] = str(folder)
    return clean_environment(kept)
