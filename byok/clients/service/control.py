"""Install, remove and control the service of this machine's system."""

import os
import socket
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from byok.clients.service.base import (
    Command,
    CommandResult,
    Launch,
    Run,
    ServiceFile,
    ServiceState,
    ServiceSystem,
    decode_text,
    find_mark,
    mark_of,
    run,
)
from byok.clients.service.systems import Launchd, Systemd, WindowsTasks
from byok.core.errors import CannotStart, ConfigError, NotReady
from byok.core.language import ENGLISH, language_in_force
from byok.core.platform.paths import Paths, make_private, sync_folder, write_private
from byok.core.platform.programs import safe_path_entries

_CODE = "service"
_MAX_FILE_BYTES = 64 * 1024
# Variables that move byok's folders; a service does not see those of a shell.
_FOLDER_VARIABLES = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")


class UserService(Struct, frozen=True):
    """byok as a service of this user; `paths` are those of the daemon that it starts.

    All methods raise ConfigError if a file with the service's name is not byok's, and
    CannotStart if a command of the system fails.
    """

    system: ServiceSystem
    paths: Paths
    run: Run = run

    @classmethod
    def of_this_machine(cls, paths: Paths) -> Self:
        """Return the service of this operating system.

        Raises:
            CannotStart: byok knows none.
        """
        return cls(choose_system(paths), paths)

    def is_installed(self) -> bool:
        """Tell whether a service starts a daemon of these paths."""
        return self._marks == {mark_of(self.paths.state_dir)}

    def is_for_others(self) -> bool:
        """Tell whether byok installed a service that uses other folders."""
        return bool(self._marks - {"", mark_of(self.paths.state_dir)})

    @property
    def _marks(self) -> set[str]:
        """The marks of all files of the service; "" for a missing one."""
        return {read_mark(path) for path in self.system.paths}

    def check_owner(self) -> None:
        """Check that no installed service uses other folders.

        Raises:
            ConfigError: one does.
        """
        if self.is_for_others():
            raise ConfigError(
                "A service of byok with other folders is installed.",
                hint="Remove it with the BYOK_HOME of then: byok service uninstall",
            )

    def check_system(self) -> None:
        """Check that the service manager runs.

        Raises:
            CannotStart: it does not; the hint says what to do.
        """
        if self.system.check is None:
            return
        try:
            self.run(self.system.check)
        except CannotStart as error:
            raise CannotStart(
                f"{self.system.title} does not run here, or not for you.",
                code=_CODE,
                hint=self.system.cure,
            ) from error

    def fit(self, launch: Launch) -> Launch:
        """Return the launch without a sandbox if the system does not support one."""
        if self.system.probe is None:
            return launch
        try:
            self.run(self.system.probe)
        except CannotStart:
            return replace(launch, sandbox=False)
        return launch

    def install(self, files: list[ServiceFile], launch: Launch) -> None:
        """Write the files, and make the system start the service now and at login."""
        self._check_name_is_free()
        for folder in launch.folders:
            make_private(folder)
        write_files(files)
        self._run_all(self.system.install)

    def uninstall(self) -> list[str]:
        """Stop the service and remove its files; return their names.

        Raises:
            ConfigError: the service uses other folders; nothing is removed.
        """
        if not any(self._marks):
            return []
        self.check_owner()
        self._run_all(self.system.remove)
        removed = remove_files(self.system.paths)
        self._run_all(self.system.forget)
        return [str(path) for path in removed]

    def control(self, verb: Literal["start", "stop", "restart"]) -> None:
        """Start the service, stop it until the next login or start, or restart it.

        Raises:
            NotReady: it is not installed.
        """
        if not self.is_installed():
            raise NotReady(
                "byok is not installed as a service.",
                code=_CODE,
                hint="Run: byok service install",
            )
        self._run_all(getattr(self.system, verb))

    def state(self) -> ServiceState:
        """Ask the system for the state of the service."""
        return self.system.read_state(self._run_all(self.system.query))

    def _run_all(self, commands: Iterable[Command]) -> list[CommandResult]:
        """Run commands in order; stop with an error at one that must not fail."""
        return [self.run(command) for command in commands]

    def _check_name_is_free(self) -> None:
        taken = self.system.taken
        if taken is None or any(self._marks):
            return
        if self.run(replace(taken, may_fail=True)).exit_code == 0:
            raise ConfigError(
                f"{self.system.title} has another service with the name byok; it was "
                "not changed.",
                hint="Remove or rename it, then try again.",
            )


def read_file(path: Path) -> str | None:
    """Return the content of a file; None if there is none.

    Raises:
        ConfigError: it is a link, no regular file, or too large for one of byok's.
    """
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
        raise _foreign_file(path)
    with path.open("rb") as file:
        return decode_text(file.read(_MAX_FILE_BYTES))


def read_mark(path: Path) -> str:
    """Return the mark of a file that byok wrote; "" if there is no file.

    Raises:
        ConfigError: the file is not byok's.
    """
    content = read_file(path)
    if content is None:
        return ""
    mark = find_mark(content)
    if not mark:
        raise _foreign_file(path)
    return mark


def write_files(files: Sequence[ServiceFile]) -> None:
    """Write all files, each atomically.

    Raises:
        ConfigError: one would replace a file that is not byok's; none is written.
    """
    for file in files:
        read_mark(file.path)
    for file in files:
        write_private(file.path, file.content.encode(file.encoding))


def remove_files(paths: Iterable[Path]) -> list[Path]:
    """Remove the files that byok wrote, and return them.

    Raises:
        ConfigError: one is not byok's; none is removed.
    """
    ours = [path for path in paths if read_mark(path)]
    for path in ours:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
    return ours


def _foreign_file(path: Path) -> ConfigError:
    return ConfigError(
        f"{path} was not written by byok; it was not changed.",
        hint="Move it away, then try again.",
    )


def choose_system(
    paths: Paths, platform: str = sys.platform, environ: Mapping[str, str] = os.environ
) -> ServiceSystem:
    """Return the service manager of this operating system, whether it runs or not.

    Raises:
        CannotStart: byok knows none.
    """
    home = Path.home()
    if platform == "linux":
        folder = environ.get("XDG_CONFIG_HOME", "")
        config = Path(folder) if Path(folder).is_absolute() else home / ".config"
        return Systemd(config / "systemd" / "user")
    if platform == "darwin":
        return Launchd(
            home / "Library" / "LaunchAgents",
            os.getuid() if hasattr(os, "getuid") else 0,
        )
    if platform == "win32":
        names = (environ.get("USERDOMAIN", ""), environ.get("USERNAME", ""))
        return WindowsTasks(paths.state_dir, "\\".join(filter(None, names)))
    raise CannotStart(
        f"byok knows no service manager of this system ({platform}).",
        code="service",
        hint="Start `byok serve` where the system starts your programs.",
    )


def make_launch(
    paths: Paths,
    port: int,
    config: Path | None = None,
    *,
    sandbox: bool = True,
    environ: Mapping[str, str] = os.environ,
    platform: str = sys.platform,
) -> Launch:
    """Return what the service runs: this interpreter, with the present folders.

    It gets the language in force as an option, as its environment may not name one.

    Raises:
        ConfigError: a path has characters that no service can be given.
    """
    variables = {"BYOK_HOME": str(paths.config_dir)} if environ.get("BYOK_HOME") else {}
    if platform != "win32":
        variables |= {
            name: environ[name]
            for name in _FOLDER_VARIABLES
            if Path(environ.get(name, "")).is_absolute()
        }
        if path := _search_path(environ):
            variables["PATH"] = path
    language = language_in_force()
    options = () if language == ENGLISH else ("--lang", language)
    return Launch(
        python=sys.executable,
        options=(*options, *(("--config", str(config.absolute())) if config else ())),
        environment=variables,
        folders=tuple(
            folder
            for folder in paths.folders
            if not any(other in folder.parents for other in paths.folders)
        ),
        port=port,
        mark=mark_of(paths.state_dir),
        has_ipv6=_has_ipv6(),
        sandbox=sandbox,
    )


def _search_path(environ: Mapping[str, str]) -> str:
    """Return the PATH of this shell, without a virtual environment.

    The PATH of a service is short; ripgrep, git and key commands may be elsewhere. A
    virtual environment belongs to a project, which may be anybody's.
    """
    project = environ.get("VIRTUAL_ENV", "")
    entries = safe_path_entries(
        environ.get("PATH", ""), [Path(project)] if project else ()
    )
    return os.pathsep.join(dict.fromkeys(filter(str.isprintable, map(str, entries))))


def _has_ipv6() -> bool:
    try:
        with closing(socket.socket(socket.AF_INET6, socket.SOCK_STREAM)) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
