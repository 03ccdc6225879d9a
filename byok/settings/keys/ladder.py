"""The key ladder, which tries the sources of a key in order, and pools of keys.

The order is: `api_key_env`, `api_key_cmd` or a variable in `key_names`; the systemd
credential `byok.NAME`; `BYOK_KEY_<NAME>`; the vendor's own variable, such as
`OPENAI_API_KEY`; the OS keyring; the encrypted vault. A source of the first kind is
exclusive: with a fallback, a typo would silently send another key, perhaps of another
account.

Otherwise explicit sources come before ambient ones, and cheap ones before those that
may open a dialog. A service manager or shell sets a credential or variable for this
process, so it overrides a stored key. `BYOK_KEY_<NAME>` can only be meant for byok, so
it comes before the vendor's variable, which applies to the vendor's own address only:
`OPENAI_API_KEY` must not be sent to a gateway that imitates OpenAI. For local servers,
which rarely need a key, `stores=False` leaves keyring and vault out.

Stored keys are named `NAME@scheme://host:port`. If they were named after the upstream
alone, anybody who can change `base_url` could have the key sent to another host. Now
such a change finds no key, and the user has to set it again.

A store that fails (locked, damaged, no backend) does not end the search; its reason is
shown only if no key is found. A named source or a credential that fails does raise,
because there the intention is clear. Empty values count as missing, so that an empty
variable in a shell profile does not hide the keyring.

The key command runs without a shell, outside the working folder and without keys in its
environment, so that a repository can neither replace it nor read from it. Its output is
limited and never shown. The whole process group is killed at the timeout: a surviving
child would keep the pipe open and block the reader.
"""

import asyncio
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from byok.core.bounded import BoundedMap
from byok.core.errors import ByokError, ConfigError, KeyMissing
from byok.core.platform.programs import run_program, safe_path_entries
from byok.core.redact import Redactor
from byok.core.routing import CUSTOM
from byok.settings.keys.keyring_store import KeyringStore
from byok.settings.keys.vault import Vault

_log = logging.getLogger(__name__)
# Names of keys that belong to no upstream.
TEAM_INDEX = "team-index"  # the server of the team's index
SEARCH_SERVER = "search-server"
WEB_SEARCH = "web-search"  # the provider of web search
TEAM_SALT = "salt"  # the label of the team's salt, a second key of TEAM_INDEX
SHORTEST = 8
LONGEST = 512
_MAX_OUTPUT_BYTES = 4096  # of a key command, and of a systemd credential
_MAX_CONVERSATIONS = 1000  # whose key a pool remembers
_MISSING_SECONDS = 900.0  # the cooldown of a key that was not found


def own_variable(upstream: str, label: str = "") -> str:
    """Return `BYOK_KEY_<UPSTREAM>`, or `BYOK_KEY_<UPSTREAM>__<LABEL>`."""
    name = f"{upstream}__{label}" if label else upstream
    return f"BYOK_KEY_{name.upper().replace('-', '_')}"


def clean_key(raw: str, *, shortest: int = SHORTEST) -> str:
    """Return a pasted key without surrounding spaces and quotes, and without `Bearer`.

    Raises:
        ConfigError: the result cannot be a key; the message never contains the value.
    """
    key = raw.strip()
    if len(key) > 1 and key[0] == key[-1] and key[0] in "\"'":
        key = key[1:-1].strip()
    while key[:7].lower() == "bearer ":
        key = key[7:].strip()
    if not key:
        raise ConfigError("The key is empty.")
    if len(key) < shortest:
        raise ConfigError(f"A key has at least {shortest} characters; this has fewer.")
    if len(key) > LONGEST:
        raise ConfigError(f"A key has at most {LONGEST} characters; this has more.")
    if not all("!" <= char <= "~" for char in key):
        raise ConfigError(
            "A key has printable ASCII characters only and no spaces; this has others.",
            hint="Copy it again from the provider's page.",
        )
    return key


def fingerprint(key: str) -> str:
    """Return the first 8 hex digits of a key's SHA-256, to tell keys apart."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]


class KeyLookup(Struct, frozen=True):
    """The description of a key: the upstream that needs it, and its sources.

    `named_env` and `command` are the user's `api_key_env` and `api_key_cmd`;
    `preset_env` is the vendor's variable, "" if the address is not the vendor's. A
    `label` tells several keys of one upstream apart.
    """

    name: str
    base_url: str
    preset_env: str = ""
    named_env: str = ""
    command: tuple[str, ...] = ()
    label: str = ""

    @property
    def title(self) -> str:
        """The name of the upstream, and of the key if there are several."""
        return f"{self.name}/{self.label}" if self.label else self.name

    @property
    def origin(self) -> str:
        """Scheme, host and port of the upstream."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def entry(self) -> str:
        """The name under which keyring and vault store the key."""
        return f"{self.title}@{self.origin}"

    @property
    def own_env(self) -> str:
        """The variable `BYOK_KEY_<NAME>`, or `BYOK_KEY_<NAME>__<LABEL>`."""
        return own_variable(self.name, self.label)

    @property
    def variables(self) -> tuple[str, ...]:
        """All environment variables that may have the key, by precedence."""
        names = (self.named_env, self.own_env, self.preset_env)
        return tuple(filter(None, names))

    @property
    def credential(self) -> str:
        """The systemd credential, `byok.NAME` or `byok.NAME.LABEL`."""
        return f"byok.{self.title.replace('/', '.')}"

    @property
    def command_name(self) -> str:
        """The name for `byok keys set`; the address of a server without a name."""
        return self.origin if self.title == CUSTOM else self.title


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key and its source; repr does not show the value."""

    value: str = field(repr=False)
    source: str


class KeyLadder:
    """Looks for keys in all sources; may block for seconds, so call it in a thread."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str] = os.environ,
        keyring: KeyringStore | None = None,
        vault: Vault | None = None,
        command_seconds: float = 5,
    ) -> None:
        self._environ = environ
        self._command_seconds = command_seconds
        self.keyring = keyring or KeyringStore()
        self.vault = vault

    def find(self, lookup: KeyLookup, *, stores: bool = True) -> FoundKey:
        """Return the first key found; without `stores`, skip keyring and vault.

        Raises:
            KeyMissing: none was found; the message lists the sources.
            ConfigError: a named source failed, or its value cannot be a key.
        """
        tried: list[str] = []
        failed: dict[str, ByokError] = {}
        for source, value in self._read_sources(lookup, failed, stores):
            if value.strip():
                return FoundKey(_clean(value, source), source)
            tried.append(source)
        cure = f"Run: byok keys set {lookup.command_name}"
        if self.vault is not None and self.vault.label in failed:
            cure = failed[self.vault.label].hint or cure  # the vault may have the key
        if lookup.named_env:
            cure = (
                f"Set the variable {lookup.named_env}, or remove it from the settings."
            )
        unread = tuple(f"{label} ({error})" for label, error in failed.items())
        raise KeyMissing(
            f"No key was found for {lookup.title} ({lookup.origin}); "
            f"looked in: {', '.join((*tried, *unread))}.",
            hint=cure,
            unread=unread,
        )

    def loose_source(self, lookup: KeyLookup) -> str:
        """Return the source whose key would be sent to any address, "" if none.

        Keys of stores, and the vendor's variable, are bound to an address.
        """
        if lookup.named_env:
            return lookup.named_env
        if lookup.command:
            return "api_key_cmd"
        folder = self._environ.get("CREDENTIALS_DIRECTORY", "")
        if folder and os.path.lexists(Path(folder) / lookup.credential):
            return lookup.credential
        return lookup.own_env if self._environ.get(lookup.own_env, "").strip() else ""

    def outside_source(self, lookup: KeyLookup) -> str:
        """Return the source that outranks byok's stores, "" if none does."""
        vendor = self._environ.get(lookup.preset_env, "").strip()
        return self.loose_source(lookup) or (lookup.preset_env if vendor else "")

    def _read_sources(
        self, lookup: KeyLookup, failed: dict[str, ByokError], stores: bool
    ) -> Iterator[tuple[str, str]]:
        """Yield sources and their values in order; add stores that fail to `failed`."""
        if lookup.named_env:
            yield lookup.named_env, self._environ.get(lookup.named_env, "")
            return
        if lookup.command:
            yield "api_key_cmd", _run_command(lookup, self._command_seconds)
            return
        if folder := self._environ.get("CREDENTIALS_DIRECTORY", ""):
            yield "systemd credential", _credential(Path(folder), lookup.credential)
        for variable in (lookup.own_env, lookup.preset_env):
            if variable:
                yield variable, self._environ.get(variable, "")
        for store in (self.keyring, self.vault) if stores else ():
            if store is None:
                continue
            try:
                yield store.label, store.get(lookup.entry) or ""
            except ByokError as error:
                failed[store.label] = error


def _clean(value: str, source: str) -> str:
    try:
        return clean_key(value, shortest=1)
    except ConfigError as error:
        hint = error.hint or f"Correct what {source} gives."
        raise ConfigError(f"{source}: {error}", hint=hint) from None


def _credential(folder: Path, name: str) -> str:
    try:
        with (folder / name).open("rb") as file:
            return file.read(_MAX_OUTPUT_BYTES).decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The systemd credential {name} cannot be read.") from (error)


def _find_program(name: str) -> str:
    """Return the path of the key program, which is never in the current folder."""
    if Path(name).is_absolute():
        return name
    folders = list(map(str, safe_path_entries()))
    path = shutil.which(name, path=os.pathsep.join(folders))
    if path is None or str(Path(path).parent) not in folders:
        raise ConfigError(
            f"api_key_cmd: the program {name} was not found.",
            hint="Install it, or use its absolute path.",
        )
    return path


def _environment(lookup: KeyLookup) -> dict[str, str]:
    """Return the environment without variables for keys."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in lookup.variables
        and not (name.startswith("BYOK_") or name.endswith("_API_KEY"))
    }


def _run_command(lookup: KeyLookup, seconds: float) -> str:
    """Run the user's key command and return its first line.

    Raises:
        ConfigError: it cannot be run, fails, prints nothing, or takes too long.
    """
    program, *arguments = lookup.command
    home = Path("~").expanduser()  # strangers put no files there
    try:
        result = run_program(
            [_find_program(program), *arguments],
            _environment(lookup),
            seconds=seconds,
            max_bytes=_MAX_OUTPUT_BYTES,
            folder=home if home.is_dir() else None,
        )
    except OSError as error:
        raise _command_failed(lookup, f"cannot be run: {error.strerror}") from error
    if result.was_late:
        raise _command_failed(lookup, f"did not answer within {seconds:g} seconds")
    if result.exit_code and not result.was_cut:
        raise _command_failed(lookup, f"ended with exit code {result.exit_code}")
    first_line = result.out.decode("utf-8", "replace").partition("\n")[0]
    if not first_line.strip():
        raise _command_failed(lookup, "printed nothing")
    return first_line


def _command_failed(lookup: KeyLookup, problem: str) -> ConfigError:
    hint = f"Run api_key_cmd of [upstreams.{lookup.name}] by hand, and correct it."
    return ConfigError(f"api_key_cmd {problem}.", hint=hint)


class UpstreamKey:
    """The key of one upstream while the daemon runs, looked up once in a thread.

    A local server rarely needs a key. The keyring and the vault may prompt the user, so
    for a local server they are opened only after it rejected a request.
    """

    def __init__(
        self,
        ladder: KeyLadder,
        lookup: KeyLookup,
        redactor: Redactor,
        *,
        local: bool = False,
    ) -> None:
        self._ladder = ladder
        self.lookup = lookup
        self._redactor = redactor
        self._stores = not local
        self._found: FoundKey | None = None
        self._is_outdated = False  # the look-up in progress
        self._lock = asyncio.Lock()

    @property
    def source(self) -> str:
        """Where the key was found; "" before it is looked up."""
        return self._found.source if self._found else ""

    def begin(self, conversation: str = "") -> Self:
        """Return the key for one request, which is always this one."""
        return self

    def replace(self, seconds: float) -> bool:
        """Return False: there is no other key to use; see PooledKey."""
        return False

    async def get(self) -> str:
        """Return the key; "" if the upstream needs none.

        Raises:
            KeyMissing: the upstream needs one and none was found.
        """
        if self._found is not None:  # without the lock, in nearly all calls
            return self._found.value
        async with self._lock:
            while self._found is None:
                self._is_outdated = False
                found = await asyncio.to_thread(self._find)
                self._redactor.add(found.value)
                if not self._is_outdated:
                    self._found = found
        return self._found.value

    def forget(self, *, everywhere: bool = True) -> None:
        """Look the key up again next time, `everywhere` or in the same sources."""
        self._found = None
        self._is_outdated = True
        self._stores = self._stores or everywhere

    def _find(self) -> FoundKey:
        try:
            return self._ladder.find(self.lookup, stores=self._stores)
        except KeyMissing:
            lookup = self.lookup
            if lookup.preset_env or lookup.named_env or lookup.label:
                raise
            return FoundKey("", "none needed")


class KeyPool:
    """Several keys of one upstream, the preferred one first.

    A key has a cooldown after a refusal of its own, for as long as the refusal says.
    Vendors cache prompts for each account, so a conversation keeps its key as long as
    that one works.
    """

    def __init__(
        self,
        keys: Sequence[UpstreamKey],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.keys = tuple(keys)
        self._clock = clock
        self._cooldown_ends = [0.0] * len(self.keys)
        self._by_conversation = BoundedMap[str, int](_MAX_CONVERSATIONS)  # indices

    def begin(self, conversation: str = "") -> "PooledKey":
        """Return the key for one request; conversation "" stands for none."""
        return PooledKey(self, conversation)

    async def get(self) -> str:
        """Return the key of a request without a conversation; see UpstreamKey.get."""
        return await self.begin().get()

    def forget(self, *, everywhere: bool = True) -> None:
        """Look every key up again, and end all cooldowns."""
        self._cooldown_ends = [0.0] * len(self.keys)
        for key in self.keys:
            key.forget(everywhere=everywhere)

    def choose(self, conversation: str) -> int:
        """Return the index of a ready key, else of that with the shortest cooldown."""
        now = self._clock()
        indices = range(len(self.keys))
        ready = [index for index in indices if self._cooldown_ends[index] <= now]
        previous = self._by_conversation.get(conversation)
        if previous in ready:
            return previous
        return ready[0] if ready else min(indices, key=self._cooldown_ends.__getitem__)

    def keep(self, conversation: str, index: int) -> None:
        """Use this key for the next requests of a conversation."""
        if conversation:
            self._by_conversation[conversation] = index

    def rest(self, index: int, seconds: float) -> list[int]:
        """Start the cooldown of a key; return the indices of the ready keys."""
        now = self._clock()
        self._cooldown_ends[index] = now + seconds
        _log.info("%s rests for %.0f s", self.keys[index].lookup.title, seconds)
        return [n for n, end in enumerate(self._cooldown_ends) if end <= now]


class PooledKey:
    """The key of one request, which may be replaced by another one."""

    def __init__(self, pool: KeyPool, conversation: str) -> None:
        self._pool = pool
        self._conversation = conversation
        self._index = pool.choose(conversation)
        self._tried: set[int] = set()

    async def get(self) -> str:
        """Return the key.

        Raises:
            KeyMissing: none of the keys was found.
        """
        while True:
            try:
                key = await self._pool.keys[self._index].get()
            except KeyMissing:
                if not self.replace(_MISSING_SECONDS):
                    raise
                continue
            self._pool.keep(self._conversation, self._index)
            return key

    def forget(self) -> None:
        """Look this key up again next time."""
        self._pool.keys[self._index].forget()

    def replace(self, seconds: float) -> bool:
        """Start the key's cooldown and use another one; False if none is left."""
        self._tried.add(self._index)
        ready = self._pool.rest(self._index, seconds)
        other = next((index for index in ready if index not in self._tried), None)
        if other is None:
            return False
        self._index = other
        return True


AnyKey: TypeAlias = UpstreamKey | KeyPool
