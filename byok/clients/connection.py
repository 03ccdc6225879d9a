"""The settings that each client needs, and the changes of its settings file."""

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct

from byok.clients import jsonc, toml_text
from byok.clients.document import TEXT_EDITORS, put_all, take_out, value_digest
from byok.clients.locations import ClientKind
from byok.clients.settings_file import (
    LARGEST,
    Backup,
    BackupStore,
    SettingsFile,
    bytes_digest,
    check_unchanged,
    read_settings_file,
    remove_settings_file,
    replace_settings_file,
)
from byok.clients.settings_text import (
    Setting,
    SettingPath,
    TextFormat,
    decode_text,
    encode_text,
)
from byok.core.chat import Json
from byok.core.errors import ConfigError
from byok.core.escapes import shell_word
from byok.core.platform.paths import Paths
from byok.core.urls import host_of

_OBJECT = "augment.advanced"
_BEARER = "Bearer "  # before a token in a header
_CODEX_WINDOW = "model_context_window"  # Codex applies it to every model
_MAX_SLOW_BYTES = 250_000  # of TOML and YAML, whose editors take seconds for more


class DaemonAddress(NamedTuple):
    """The daemon's URL, the client token and its file, and the model to use.

    `window` and `most_output` are those of the model in tokens, 0 if unknown.
    """

    url: str
    token: str
    token_file: PurePath
    model: str = ""
    window: int = 0
    most_output: int = 0

    def with_model(self, catalog: Json, requested: str = "") -> "DaemonAddress":
        """Return the address with the requested model or the default, and its facts."""
        model = requested or str(catalog["default"])
        rows = (r for r in catalog["models"] if model in (r["id"], r["model"]))
        facts: Json = next((row["facts"] for row in rows), {})
        window = facts.get("loaded_window") or facts.get("window", 0)
        return self._replace(
            model=model, window=window, most_output=facts.get("max_output", 0)
        )

    @property
    def openai_url(self) -> str:
        """The base URL for clients of OpenAI's API."""
        return f"{self.url}/v1"


def settings_for(
    client: ClientKind,
    daemon: DaemonAddress,
    text: str = "",
    *,
    windows: bool = False,
    mcp: bool = False,
) -> tuple[Setting, ...]:
    """Return the settings that a client needs; `text` is its current file.

    With `mcp` they make byok one of its MCP servers, else the source of its answers;
    () if byok knows none for that.

    Raises:
        ValueError: the text cannot be read.
    """
    table: Json = {}
    match client:
        case _ if mcp:
            table = _mcp_server(client, daemon, text, windows=windows)
        case ClientKind.CODEX:
            table = _codex(daemon, text, windows=windows)
        case ClientKind.OPENCODE:
            table = _opencode(daemon)
        case ClientKind.AIDER:
            table = _aider(daemon)
        case ClientKind.CONTINUE:
            return _continue(daemon, text)
        case _:
            return _vscode(daemon, text) if client.is_editor else ()
    return tuple(_flatten(table))


def _flatten(table: Json, *path: str) -> Iterator[Setting]:
    """Yield a setting for each value of a table and of its nested tables."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, *path, name)
        else:
            yield Setting((*path, name), value)


def _vscode(daemon: DaemonAddress, text: str) -> tuple[Setting, ...]:
    """Return the two settings of the extension.

    They may be dotted names, or members of an object `augment.advanced`. Of the two
    forms, VS Code uses the one that comes last in the file. So they are set in the
    object if there is one, and as dotted names if they are there or there is no object.
    """
    values = {"completionURL": daemon.url, "apiToken": daemon.token}
    has_object = isinstance(jsonc.read(text, (_OBJECT,)), dict)
    settings = []
    for name, value in values.items():
        dotted = (f"{_OBJECT}.{name}",)
        if has_object:
            settings.append(Setting((_OBJECT, name), value))
        if not has_object or isinstance(jsonc.read(text, dotted), str):
            settings.append(Setting(dotted, value))
    return tuple(settings)


def _codex(daemon: DaemonAddress, text: str, *, windows: bool) -> Json:
    """Return a provider that reads the token from byok's file, so no copy goes stale.

    "Custom model providers" of developers.openai.com/codex/config-advanced, and
    `model_context_window` of .../codex/config-reference. `auth` must not be combined
    with `env_key`, a variable for the token: one that the user named stays.
    """
    provider: dict[str, Any] = {"name": "byok", "base_url": daemon.openai_url}
    provider["wire_api"] = "responses"
    if not isinstance(
        toml_text.read(text, ("model_providers", "byok", "env_key")), str
    ):
        program, *arguments = ["cmd", "/d", "/c", "type"] if windows else ["cat"]
        arguments.append(str(daemon.token_file))
        provider["auth"] = {"command": program, "args": arguments}
    return {
        "model": daemon.model,
        **({_CODEX_WINDOW: daemon.window} if daemon.window else {}),
        "model_provider": "byok",
        "model_providers": {"byok": provider},
    }


def _opencode(daemon: DaemonAddress) -> Json:
    """Return a provider; opencode reads the token from byok's file.

    "Custom provider" of opencode.ai/docs/providers, "Variables" of .../docs/config. It
    sends pictures only to models that declare them, and accepts a limit of the context
    only with one of the output.
    """
    key = f"{{file:{daemon.token_file.as_posix()}}}"
    model: dict[str, Any] = {"name": daemon.model}
    model["modalities"] = {"input": ["text", "image"], "output": ["text"]}
    if daemon.window and daemon.most_output:
        model["limit"] = {"context": daemon.window, "output": daemon.most_output}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "byok",
        "options": {"baseURL": daemon.openai_url, "apiKey": key},
        "models": {daemon.model: model},
    }
    return {"provider": {"byok": provider}, "model": f"byok/{daemon.model}"}


def _aider(daemon: DaemonAddress) -> Json:
    """Return aider's options for an API like OpenAI's.

    aider.chat/docs/config/aider_conf.html and .../llms/openai-compat.html.
    """
    return {
        "model": f"openai/{daemon.model}",
        "openai-api-base": daemon.openai_url,
        "openai-api-key": daemon.token,
    }


def _continue(daemon: DaemonAddress, text: str) -> tuple[Setting, ...]:
    """Return a model of the list, and the names that a new file must begin with.

    "config.yaml reference" of docs.continue.dev/reference. It offers tools and pictures
    only to models whose names it knows, or that declare these capabilities.
    """
    model: dict[str, str | list[str] | dict[str, int]] = {
        "name": "byok",
        "provider": "openai",
        "model": daemon.model,
        "apiBase": daemon.openai_url,
        "apiKey": daemon.token,
        "capabilities": ["tool_use", "image_input"],
    }
    if daemon.window:
        model["defaultCompletionOptions"] = {"contextLength": daemon.window}
    head = {"name": "byok", "version": "1.0.0", "schema": "v1"}
    return (
        *(Setting((name,), value) for name, value in head.items() if not text.strip()),
        Setting(("models", "name=byok"), model),
    )


def _mcp_server(
    client: ClientKind, daemon: DaemonAddress, text: str, *, windows: bool
) -> Json:
    """Return the entry of byok among the MCP servers of a client.

    If a client can read a file or run a command, it gets no copy of the token, which
    could go stale.
    """
    copy = {"Authorization": f"{_BEARER}{daemon.token}"}
    url: Json = {"url": f"{daemon.url}/mcp"}
    match client:
        case ClientKind.CODEX:  # developers.openai.com/codex/mcp
            variable = ("mcp_servers", "byok", "bearer_token_env_var")
            has_variable = isinstance(toml_text.read(text, variable), str)
            entry = url if has_variable else {**url, "http_headers": copy}
            return {"mcp_servers": {"byok": entry}}
        case ClientKind.OPENCODE:  # version 2 has `servers`, and reads version 1, too
            servers = jsonc.read(text, ("mcp", "servers"))
            is_new = isinstance(servers, dict) and "type" not in servers
            read = f"Bearer {{file:{daemon.token_file.as_posix()}}}"
            entry = {"type": "remote", **url, "headers": {"Authorization": read}}
            server = {"byok": {**entry, "oauth": False}}
            return {"mcp": {"servers": server} if is_new else server}
        case ClientKind.CLAUDE_CODE:
            header: Json = {"headers": copy}
            if not windows:
                headers = '{"Authorization": "Bearer %s"}'  # a format of printf
                file = shell_word(daemon.token_file)
                header = {"headersHelper": f"printf '{headers}' \"$(cat {file})\""}
            return {"mcpServers": {"byok": {"type": "http", **url, **header}}}
        case ClientKind.CURSOR:
            return {"mcpServers": {"byok": {**url, "headers": copy}}}
        case _ if client.is_editor:
            return {"servers": {"byok": {"type": "http", **url, "headers": copy}}}
        case _:
            return {}


class ConnectionState(StrEnum):
    """Whether a client's settings point at byok."""

    CONNECTED = "connected"
    OLD = "old"  # at another address, or with another token
    OFF = "off"
    MISSING = "missing"  # the client is not installed here, as far as its folder tells


class Pointer(NamedTuple):
    """An address or token of byok that a client needs, and the text that it has."""

    wanted: str
    found: str

    @property
    def is_right(self) -> bool:
        """Whether the text leads to byok; every spelling of its address does."""
        if self.found.removeprefix(_BEARER).strip() == self.wanted:
            return True
        return "://" in self.wanted and place_of(self.found) == place_of(self.wanted)


def place_of(url: str) -> str:
    """Return scheme, host and port of an address, with 127.0.0.1 for localhost."""
    try:
        origin = f"{urlsplit(url).scheme}://{host_of(url)}"
    except ValueError:
        return "no address"
    return origin.replace("//localhost:", "//127.0.0.1:")


def read_pointers(
    client: ClientKind,
    text: str,
    daemon: DaemonAddress,
    *,
    windows: bool = False,
    mcp: bool = False,
) -> list[Pointer]:
    """Return the texts that a client's file has in place of byok's address and token.

    Raises:
        ValueError: the text cannot be read.
    """
    editor, pointers = TEXT_EDITORS[client.text_format], list[Pointer]()
    for path, needed in settings_for(client, daemon, text, windows=windows, mcp=mcp):
        current = editor.read(text, path)
        pairs = [(needed, current)]
        if isinstance(needed, dict) and isinstance(current, dict):
            pairs = [(value, current.get(name)) for name, value in needed.items()]
        pointers += [
            Pointer(expected.removeprefix(_BEARER), actual)
            for expected, actual in pairs
            if isinstance(expected, str) and isinstance(actual, str)
            if expected.removeprefix(_BEARER) == daemon.token
            or expected.startswith(daemon.url)
        ]
    return pointers


def largest_file(client: ClientKind) -> int:
    """Return how many bytes a client's settings file may have."""
    return LARGEST if client.text_format is TextFormat.JSONC else _MAX_SLOW_BYTES


class FileChange(Struct, frozen=True):
    """A planned change of a settings file.

    `after` is the new content, None if the file is to be removed. `changed` are
    settings of byok that somebody else has changed since, and that stay. `backup` is
    the backup to save; None if the existing one is to be removed.
    """

    client: ClientKind
    file: SettingsFile
    after: bytes | None
    backup: Backup | None = None
    changed: tuple[SettingPath, ...] = ()
    is_exact: bool = True

    @property
    def is_needed(self) -> bool:
        """Whether the plan changes the file at all."""
        return self.after != self.file.raw


class FileConnector(Struct, frozen=True):
    """Plans and carries out changes of settings files below a home folder."""

    backups: BackupStore
    home: Path
    windows: bool = False

    def plan_connect(
        self,
        client: ClientKind,
        path: Path,
        daemon: DaemonAddress,
        *,
        mcp: bool = False,
        only_shown: bool = False,
    ) -> FileChange:
        """Plan to write byok's settings to a file.

        If the plan is `only_shown`, the folder of the file may be missing.

        Raises:
            ConfigError: the file cannot be read or changed; the hint says what to do.
        """
        is_missing = only_shown and not path.parent.is_dir()
        file = SettingsFile(path, None) if is_missing else self._read(client, path)
        backup = self.backups.find(client, file.path)
        before = file.raw
        if backup and file.raw is not None:
            before = _undo(client, file, backup)[0]
        try:
            old = decode_text(file.raw or b"")
            settings = settings_for(
                client, daemon, old.text, windows=self.windows, mcp=mcp
            )
            text = old.text
            if not (mcp or daemon.window) and backup:  # remove another model's window
                values = backup.values.items()
                written = [row for row in values if row[0] == (_CODEX_WINDOW,)]
                base = decode_text(backup.before or b"").text
                text = take_out(text, base, written, client.text_format).text
            new = old._replace(text=put_all(text, settings, client.text_format))
        except ValueError as error:
            raise _unusable_file(file, error) from None
        after = encode_text(new)
        backup = backup or Backup(client, file.path, before)
        if before != backup.before:
            backup = Backup(client, file.path, before, values=backup.values)
        digests = {path: value_digest(value) for path, value in settings}
        return FileChange(client, file, after, backup.with_written(after, digests))

    def plan_disconnect(self, client: ClientKind, path: Path) -> FileChange:
        """Plan to remove byok's settings from a file.

        Raises:
            ConfigError: byok has not written there, or as in `plan_connect`.
        """
        if not path.parent.is_dir():
            raise ConfigError(
                f"There is nothing to undo: {path.parent} does not exist."
            )
        file = self._read(client, path)
        backup = self.backups.find(client, file.path)
        if backup is None:
            raise ConfigError(
                f"byok has not changed {file.path}.",
                hint=f"byok connect {client} prints the settings to look for.",
            )
        if file.raw is None:
            return FileChange(client, file, None)
        after, changed = _undo(client, file, backup)
        return FileChange(
            client, file, after, changed=changed, is_exact=after == backup.before
        )

    def disconnect(self, client: ClientKind, path: Path) -> None:
        """Remove byok's settings from a file; raises as `plan_disconnect` does."""
        self.carry_out(self.plan_disconnect(client, path))

    def state_of(
        self, client: ClientKind, path: Path, daemon: DaemonAddress
    ) -> ConnectionState:
        """Tell whether a settings file points at the daemon, with its token.

        Raises:
            ConfigError: as in `plan_connect`.
        """
        if not path.parent.is_dir():
            return ConnectionState.MISSING
        file = self._read(client, path)
        try:
            text = decode_text(file.raw or b"").text
            pointers = read_pointers(client, text, daemon)
        except ValueError as error:
            raise _unusable_file(file, error) from None
        if pointers and all(pointer.is_right for pointer in pointers):
            return ConnectionState.CONNECTED
        was_connected = self.backups.find(client, file.path) is not None
        if pointers or was_connected:
            return ConnectionState.OLD
        return ConnectionState.OFF

    def find_old_tokens(
        self, client: ClientKind, daemon: DaemonAddress
    ) -> Iterator[tuple[Path, bool]]:
        """Yield the files that byok wrote and that have another token than the daemon.

        The second value is whether it is that of an MCP server.

        Raises:
            ConfigError: as in `plan_connect`.
        """
        for path in self.backups.list_paths(client):
            file = self._read(client, path)
            for mcp in (False, True):
                try:
                    text = decode_text(file.raw or b"").text
                    pointers = read_pointers(
                        client, text, daemon, windows=self.windows, mcp=mcp
                    )
                except ValueError as error:
                    raise _unusable_file(file, error) from None
                tokens = [p for p in pointers if p.wanted == daemon.token]
                if not all(token.is_right for token in tokens):
                    yield path, mcp

    def carry_out(self, change: FileChange) -> None:
        """Make a change; the backup is saved before the file is touched.

        Raises:
            ConfigError: the file has changed meanwhile, or cannot be written.
        """
        with self.backups.lock():
            check_unchanged(change.file)  # else the backup would be of another content
            if change.backup is not None:
                self._connect(change, change.backup)
                return
            if change.is_needed and change.after is None:
                remove_settings_file(change.file)
            elif change.is_needed and change.after is not None:
                replace_settings_file(change.file, change.after)
            is_gone = change.file.raw is None
            self.backups.remove(change.client, change.file.path, is_gone=is_gone)

    def _connect(self, change: FileChange, backup: Backup) -> None:
        if not change.is_needed or change.after is None:
            return
        is_first = self.backups.find(change.client, change.file.path) is None
        self.backups.save(backup, change.file.raw)
        try:
            replace_settings_file(change.file, change.after)
        except ConfigError:
            if is_first:  # the file is untouched, so there is nothing to restore
                self.backups.remove(change.client, change.file.path)
            raise

    def _read(self, client: ClientKind, path: Path) -> SettingsFile:
        return read_settings_file(path, self.home, largest=largest_file(client))


def open_connector(paths: Paths) -> FileConnector:
    """Return the connector for settings files of this user."""
    store = BackupStore(paths.client_backups)
    return FileConnector(store, Path.home(), windows=sys.platform == "win32")


def _undo(
    client: ClientKind, file: SettingsFile, backup: Backup
) -> tuple[bytes | None, tuple[SettingPath, ...]]:
    """Return the file without byok's settings, and those that others changed."""
    raw = file.raw or b""
    if bytes_digest(raw) in backup.after or raw == backup.before:
        return backup.before, ()
    try:
        base = decode_text(backup.before or b"")
        current = decode_text(raw)
        result = take_out(
            current.text, base.text, backup.values.items(), client.text_format
        )
    except ValueError as error:
        raise _unusable_file(file, error) from None
    return encode_text(current._replace(text=result.text)), result.changed


def _unusable_file(file: SettingsFile, error: ValueError) -> ConfigError:
    return ConfigError(
        f"{file.path}: {error}. Nothing was changed.",
        hint="Correct it in the program it belongs to, and try again.",
    )
