"""The order in which a key is looked for.

A source that the user named is the only one. Otherwise the first hit of: systemd
credential, `BYOK_KEY_<NAME>`, the vendor's own variable, the OS keyring, the
encrypted vault. Stored keys are bound to the origin (scheme, host, port) for which
they were stored, so that a changed base_url cannot carry a key elsewhere.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from byok.errors import ByokError, ConfigError, KeyMissing
from byok.keys.keyring_store import KeyringStore
from byok.keys.validate import clean_key
from byok.keys.vault import Vault
from byok.platform.programs import safe_path_entries

_COMMAND_SECONDS = 5
_COMMAND_BYTES = 4096


@dataclass(frozen=True, slots=True)
class KeyWanted:
    """For which upstream a key is looked for, and where the user says it is."""

    name: str
    base_url: str
    preset_env: str = ""
    named_env: str = ""
    command: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """Scheme, host and port of the upstream."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def entry(self) -> str:
        """The name under which a stored key is kept."""
        return f"{self.name}@{self.origin}"

    @property
    def own_env(self) -> str:
        """The variable `BYOK_KEY_<NAME>`."""
        return f"BYOK_KEY_{self.name.upper().replace('-', '_')}"


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key and where it was found; the value is not shown by repr."""

    value: str = field(repr=False)
    source: str


class KeyLadder:
    """Looks for keys; may block for seconds, so callers use a thread."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str] = os.environ,
        keyring: KeyringStore | None = None,
        vault: Vault | None = None,
    ) -> None:
        self._environ = environ
        self.keyring = keyring or KeyringStore()
        self.vault = vault

    def find(self, wanted: KeyWanted, *, stores: bool = True) -> FoundKey:
        """Return the first key of the ladder; without `stores` only cheap sources.

        Raises:
            KeyMissing: none was found; the text names what was tried and the cure.
            ConfigError: a named source failed, or holds what is no key.
        """
        tried: list[str] = []
        unread: list[str] = []
        for source, value in self._rungs(wanted, unread, stores):
            if value.strip():
                return FoundKey(_clean(value, source), source)
            tried.append(source)
        cure = f"Run: byok keys set {wanted.name}"
        if wanted.named_env:
            cure = f"Set the variable {wanted.named_env}, or remove api_key_env."
        raise KeyMissing(
            f"No key was found for {wanted.name} ({wanted.origin}); "
            f"looked in: {', '.join((*tried, *unread))}.",
            hint=cure,
            unread=tuple(unread),
        )

    def _rungs(
        self, wanted: KeyWanted, unread: list[str], stores: bool
    ) -> Iterator[tuple[str, str]]:
        if wanted.named_env:
            yield wanted.named_env, self._environ.get(wanted.named_env, "")
            return
        if wanted.command:
            yield "api_key_cmd", _run(wanted)
            return
        if folder := self._environ.get("CREDENTIALS_DIRECTORY", ""):
            yield "systemd credential", _credential(Path(folder), wanted.name)
        for variable in (wanted.own_env, wanted.preset_env):
            if variable:
                yield variable, self._environ.get(variable, "")
        for store in (self.keyring, self.vault) if stores else ():
            if store is None:
                continue
            try:
                yield store.label, store.get(wanted.entry) or ""
            except ByokError as error:
                unread.append(f"{store.label} ({error})")


def _clean(value: str, source: str) -> str:
    try:
        return clean_key(value, shortest=1)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}", hint=error.hint) from None


def _credential(folder: Path, name: str) -> str:
    try:
        return (folder / f"byok.{name}").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The systemd credential byok.{name} cannot be read.") from (
            error
        )


def _program(name: str) -> str:
    """Return the path of the key program; one in the current folder never counts."""
    if Path(name).is_absolute():
        return name
    folders = list(map(str, safe_path_entries()))
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None or str(Path(found).parent) not in folders:
        raise ConfigError(
            f"api_key_cmd: the program {name} was not found.",
            hint="Install it, or name it by its whole path.",
        )
    return found


def _environment(wanted: KeyWanted) -> dict[str, str]:
    """Return the environment without the keys that byok itself would take from it."""
    own = {wanted.own_env, wanted.preset_env, wanted.named_env}
    return {
        name: value
        for name, value in os.environ.items()
        if not (name in own or name.startswith("BYOK_") or name.endswith("_API_KEY"))
    }


def _home() -> Path | None:
    """Return the user's folder: what a program finds where it runs is the user's."""
    home = Path("~").expanduser()
    return home if home.is_dir() else None


def _run(wanted: KeyWanted) -> str:
    """Run the user's key command; its output is bounded and never shown."""
    program, *arguments = wanted.command
    try:
        process = subprocess.Popen(  # noqa: S603 - a list from the user's own settings
            [_program(program), *arguments],
            cwd=_home(),
            env=_environment(wanted),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that its children can be ended with it
        )
    except OSError as error:
        raise ConfigError(f"api_key_cmd cannot be run: {error.strerror}.") from error
    too_slow = threading.Event()

    def give_up() -> None:
        too_slow.set()
        _end(process)

    timer = threading.Timer(_COMMAND_SECONDS, give_up)
    timer.start()
    with process:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        printed = process.stdout.read(_COMMAND_BYTES)
        if len(printed) == _COMMAND_BYTES:
            _end(process)  # it may go on for ever
    timer.cancel()
    if too_slow.is_set():
        raise ConfigError(
            f"api_key_cmd did not answer within {_COMMAND_SECONDS} seconds."
        )
    if process.returncode and len(printed) < _COMMAND_BYTES:
        raise ConfigError(f"api_key_cmd ended with exit code {process.returncode}.")
    first = printed.decode("utf-8", "replace").partition("\n")[0]
    if not first.strip():
        raise ConfigError("api_key_cmd printed nothing.")
    return first


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a program and what it started: a child would keep the pipe open."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
