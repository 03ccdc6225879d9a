"""Clients on the page: which were seen, which point at byok, and pointing them there.

What is written is what `byok connect CLIENT --write` writes, at the places that it
knows, or in a file that the page names: one of the client's own name, for a client that
is not found. Lines of the files are shown without secrets.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

from byok.clients.connection import DaemonAddress, FileChange, open_connector
from byok.clients.editor import list_changes
from byok.clients.locations import WRITABLE, ClientKind, ClientMachine, find_location
from byok.clients.settings_file import bytes_digest
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

_DIGEST = 64
_LONGEST_PATH = 4096
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
        self._changing = asyncio.Lock()
        self.handlers: Mapping[str, PageHandler] = {
            "clients": self.list_clients,
            "client-connect": partial(self._change, self._plan_connect),
            "client-disconnect": partial(self._change, self._plan_disconnect),
        }

    async def list_clients(self, asked: PageRequest) -> Json:
        """Return the clients, whether they point at byok, and when they last asked."""
        seen = await self._journal.list_clients()
        address = await asyncio.to_thread(self._address, asked)
        rows = await asyncio.to_thread(
            lambda: [self._describe(kind, address, seen) for kind in ClientKind]
        )
        return {"url": address.url, "clients": rows}

    def _describe(
        self, kind: ClientKind, address: DaemonAddress, seen: Mapping[str, float]
    ) -> Json:
        state, path, error = "", "", ""
        if kind in WRITABLE:
            try:
                place = self._find(kind)
                path = str(place)
                state = self._connector.state_of(kind, place, address)
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
            "last": seen.get(family),
            "error": error,
        }

    async def _change(self, plan: _Plan, asked: PageRequest) -> Json:
        """Show a change, or make it with `write`, unless another one was shown.

        Of a client that was not found it is shown what would be written.
        """
        kind = ClientKind(read_choice(asked.body, "client", [*WRITABLE]))
        writes = read_flag(asked.body, "write")
        shown = read_text(asked.body, "digest", longest=_DIGEST)
        typed = read_text(asked.body, "file", longest=_LONGEST_PATH)
        address = await asyncio.to_thread(self._address, asked)
        async with self._changing:
            path = await asyncio.to_thread(self._find, kind, typed)
            only_shown = not writes and not typed
            change = await asyncio.to_thread(plan, kind, path, address, only_shown)
            digest = _digest_of(change)
            if writes and shown not in ("", digest):
                raise BadRequest(
                    f"{change.file.path} is no longer what was shown.",
                    code="settings_changed",
                    hint="Look at the lines again.",
                    status=409,
                )
            if writes:
                await asyncio.to_thread(self._connector.carry_out, change)
        hide = self._services.redactor
        rows = list_changes(change.file.raw, change.after, hide)
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

    def _find(self, kind: ClientKind, typed: str = "") -> Path:
        """Return the settings file of a client: the one that was typed, or the usual.

        Where that has no folder, it is one that byok has changed.

        Raises:
            BadRequest: what was typed is no file of this client.
        """
        usual = find_location(kind, self._machine).path
        if typed:
            return _read_path(kind, typed, usual.name)
        known = [usual, *self._connector.backups.list_paths(kind)]
        return next((path for path in known if path.parent.is_dir()), usual)

    def _address(self, asked: PageRequest) -> DaemonAddress:
        """Return where byok answers: the port that the page came to."""
        token_file = self._services.paths.token
        token = read_token(token_file)
        self._services.redactor.add(token)
        url = f"http://127.0.0.1:{port_of(asked.exchange)}"
        address = DaemonAddress(url, token, token_file)
        return address.with_model(known_catalog(self._services))


def _read_path(kind: ClientKind, typed: str, name: str) -> Path:
    """Return the path of a settings file; its folder will do.

    Raises:
        BadRequest: it is not whole, or of a file that the client calls otherwise.
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
    """Return what stands for a change: the file before and after it."""
    parts = (
        bytes_digest(raw) if raw is not None else ""
        for raw in (change.file.raw, change.after)
    )
    return bytes_digest(" ".join(parts).encode())
