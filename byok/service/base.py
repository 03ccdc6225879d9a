"""What all systems have in common: what is to run, files, commands, and a state.

A system describes what to write and what to run, and reads what its programs print; it
performs no I/O itself. `control.py` carries it out.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from byok.errors import ConfigError

_MARK = "Written by byok service install"
_FOUND = re.compile(rf"{_MARK} \(([0-9a-f]{{16}})\)")


@dataclass(frozen=True, slots=True)
class Launch:
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


@dataclass(frozen=True, slots=True)
class Command:
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


class ServiceSystem(Protocol):
    """A system's way to keep programs running.

    Attributes:
        title: its name for people.
        paths: the files of the service, whether they exist or not.
        check: shows whether it runs at all; None if it always does.
        cure: what to do if it does not.
        starts_on_request: a request starts the service, also after its end.
        kills: ends the daemon without a word, so that it has to be asked before.
        taken: succeeds if somebody else's service may have the name; None where that
            would be a file of `paths`.
        probe: shows whether it can give a service a file system of its own.
        install: what makes it take the written files, and start at login.
        start, stop, restart: of an installed service.
        remove: stops it for good; the files are removed after it.
        forget: what comes after that.
        query: asks for the state, which `read_state` reads.
    """

    @property
    def title(self) -> str: ...  # noqa: D102 - see above
    @property
    def paths(self) -> tuple[Path, ...]: ...  # noqa: D102 - see above
    @property
    def check(self) -> Command | None: ...  # noqa: D102 - see above
    @property
    def cure(self) -> str: ...  # noqa: D102 - see above
    @property
    def starts_on_request(self) -> bool: ...  # noqa: D102 - see above
    @property
    def kills(self) -> bool: ...  # noqa: D102 - see above
    @property
    def taken(self) -> Command | None: ...  # noqa: D102 - see above
    @property
    def probe(self) -> Command | None: ...  # noqa: D102 - see above
    @property
    def install(self) -> tuple[Command, ...]: ...  # noqa: D102 - see above
    @property
    def start(self) -> tuple[Command, ...]: ...  # noqa: D102 - see above
    @property
    def stop(self) -> tuple[Command, ...]: ...  # noqa: D102 - see above
    @property
    def restart(self) -> tuple[Command, ...]: ...  # noqa: D102 - see above
    @property
    def remove(self) -> tuple[Command, ...]: ...  # noqa: D102 - see above
    @property
    def forget(self) -> tuple[Command, ...]: ...  # noqa: D102 - see above
    @property
    def query(self) -> tuple[Command, ...]: ...  # noqa: D102 - see above

    def render(self, launch: Launch) -> Sequence[ServiceFile]:
        """Return the files, one for each of `paths`."""

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
