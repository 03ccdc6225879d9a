"""Clients on the page: which were seen, which use byok, and connecting them to it.

The page writes the same lines as `byok connect CLIENT --write`, into the settings file
that the command would find. For a client that is not found, the user may enter the path
of a file with the name that the client uses. Lines are shown without secrets.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

from byok.clients.connection import DaemonAddress, FileChange, open_connector
from byok.clients.locations import WRITABLE, ClientKind, ClientMachine, find_location
from byok.clients.settings_file import bytes_digest
from byok.clients.settings_text import list_changes
from byok.core.chat import Json
from byok.core.daemon.token import read_token
from byok.core.errors import BadRequest, ConfigError
from byok.server.daemon_endpoints import known_catalog
from byok.server.dashboard.endpoint import (
    PageHandler,
    PageRequest,
    port_of,
    read_choice,
    read_flag,
    read_text,
)
from byok.server.dashboard.journal_api import JournalApi
from byok.wiring.services import Services

_DIGEST_CHARS = 64
_MAX_PATH_CHARS = 4096
_Plan: TypeAlias = Callable[[ClientKind, Path, DaemonAddress, bool], FileChange]


class ClientsApi:
    """Answers about clients' settings files on a machine."""

    def __init__(
        self, services: Services, journal: JournalApi, machine: ClientMachine
    ) -> None:
        self._services = services
        self._journal = journal
        self._machine = machine
        self._connector = open_connector(services.paths)
        self._lock = asyncio.Lock()
        self.handlers: Mapping[str, PageHandler] = {
            "clients": self.list_clients,
            "client-connect": partial(self._change, self._plan_connect),
            "client-disconnect": partial(self._change, self._plan_disconnect),
        }

    async def list_clients(self, request: PageRequest) -> Json:
        """Return the clients, whether they use byok, and their last requests."""
        last = await self._journal.list_clients()
        address = await asyncio.to_thread(self._address, request)
        rows = await asyncio.to_thread(
            lambda: [self._describe(kind, address, last) for kind in ClientKind]
        )
        return {"url": address.url, "clients": rows}

    def _describe(
        self, kind: ClientKind, address: DaemonAddress, last: Mapping[str, float]
    ) -> Json:
        state, path, error = "", "", ""
        if kind in WRITABLE:
            try:
                location = self._find_file(kind)
                path = str(location)
                state = self._connector.state_of(kind, location, address)
            except ConfigError as failure:
                error = self._services.redactor(failure.message)
        # JetBrains' plugin calls itself by the name of its platform.
        family = "intellij" if kind is ClientKind.JETBRAINS else kind.value
        return {
            "client": kind.value,
            "name": kind.facts.name,
            "state": state,
            "file": path,
            "writable": kind in WRITABLE,
            "last": last.get(family),
            "error": error,
        }

    async def _change(self, plan: _Plan, request: PageRequest) -> Json:
        """Show a change, or with `write` make it, if it is the one that was shown.

        For a client that was not found, the page shows what would be written.
        """
        kind = ClientKind(read_choice(request.body, "client", [*WRITABLE]))
        writes = read_flag(request.body, "write")
        shown_digest = read_text(request.body, "digest", max_chars=_DIGEST_CHARS)
        typed = read_text(request.body, "file", max_chars=_MAX_PATH_CHARS)
        address = await asyncio.to_thread(self._address, request)
        async with self._lock:
            path = await asyncio.to_thread(self._find_file, kind, typed)
            only_shown = not writes and not typed
            change = await asyncio.to_thread(plan, kind, path, address, only_shown)
            digest = _digest_of(change)
            if writes and shown_digest not in ("", digest):
                raise BadRequest(
                    f"{change.file.path} is no longer what was shown.",
                    code="settings_changed",
                    hint="Look at the lines again.",
                    status=409,
                )
            if writes:
                await asyncio.to_thread(self._connector.carry_out, change)
        redact = self._services.redactor
        rows = list_changes(change.file.raw, change.after, redact)
        return {
            "file": str(change.file.path),
            "needed": change.is_needed,
            "removes": change.after is None,
            "lines": [row._asdict() for row in rows],
            "digest": digest,
        }

    def _plan_connect(
        self, kind: ClientKind, path: Path, address: DaemonAddress, only_shown: bool
    ) -> FileChange:
        if kind.facts.names_model and not address.model:
            raise ConfigError(
                "This client names its model in its settings, and there is no default "
                "yet.",
                hint="Choose a model for chats in the settings.",
            )
        return self._connector.plan_connect(kind, path, address, only_shown=only_shown)

    def _plan_disconnect(
        self, kind: ClientKind, path: Path, address: DaemonAddress, only_shown: bool
    ) -> FileChange:
        return self._connector.plan_disconnect(kind, path)

    def _find_file(self, kind: ClientKind, typed: str = "") -> Path:
        """Return the settings file of a client: the one that was typed, or the usual.

        If the folder of the usual file does not exist, it is a file that byok has
        changed before, if there is one.

        Raises:
            BadRequest: the path that was typed is no file of this client.
        """
        usual = find_location(kind, self._machine).path
        if typed:
            return _read_path(kind, typed, usual.name)
        candidates = [usual, *self._connector.backups.list_paths(kind)]
        return next((path for path in candidates if path.parent.is_dir()), usual)

    def _address(self, request: PageRequest) -> DaemonAddress:
        """Return byok's address, with the port that the page uses, and its token."""
        token_file = self._services.paths.token
        token = read_token(token_file)
        self._services.redactor.add(token)
        url = f"http://127.0.0.1:{port_of(request.exchange)}"
        address = DaemonAddress(url, token, token_file)
        return address.with_model(known_catalog(self._services))


def _read_path(kind: ClientKind, typed: str, name: str) -> Path:
    """Return the path of a settings file; the user may type the path of its folder.

    Raises:
        BadRequest: the path is not absolute, or the file has another name.
    """
    path = Path.home() / typed[2:] if typed.startswith("~/") else Path(typed)
    if path.is_absolute() and path.is_dir():
        path /= name
    if path.is_absolute() and path.name == name:
        return path
    raise BadRequest(
        f"This is no settings file of {kind.facts.name}: that is called {name}.",
        code="bad_field",
        hint="Enter its whole path.",
        status=422,
    )


def _digest_of(change: FileChange) -> str:
    """Return a digest of a change: of the file before and after it."""
    parts = (
        bytes_digest(raw) if raw is not None else ""
        for raw in (change.file.raw, change.after)
    )
    return bytes_digest(" ".join(parts).encode())
