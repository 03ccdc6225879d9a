"""A process that looks like the daemon and notes what it got; states of an index."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import web

from byok.cli.daemon_client import LocalClient
from byok.core.chat import Json
from byok.core.daemon import challenge
from byok.core.daemon.instance import only_instance, write_record
from byok.core.daemon.token import read_token, rotate_token
from byok.core.platform.paths import find_paths
from byok.core.routing import Service

WORD = "0123456789abcdef"


@dataclass
class Rows:
    """Answers by path; a pair of status and body, or a body alone."""

    answers: dict[str, Any] = field(default_factory=dict)
    honest: bool = True
    port: int = 0
    asked: list[tuple[str, Any]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if token := request.headers.get("Authorization"):
            self.tokens.append(token)
        if request.path == "/health":
            return web.json_response({"status": "ok"})
        body = json.loads(await request.read())
        if request.path == challenge.PATH:
            secret = "a guess"
            if self.honest:
                secret = read_token(find_paths().owner_secret)
            return web.json_response(
                challenge.answer_challenge(body, secret, self.port, WORD)
            )
        self.asked.append((request.path, body))
        given = self.answers.get(request.path, {})
        status, told = given if isinstance(given, tuple) else (200, given)
        if isinstance(told, bytes):
            return web.Response(status=status, body=told)
        return web.json_response(told, status=status)


@asynccontextmanager
async def daemon_rows(answers: dict[str, Any] | None = None) -> AsyncIterator[Rows]:
    """Hold the lock, be recorded, answer."""
    rows = Rows(answers or {})
    runner = web.ServerRunner(web.Server(rows.handle))
    await runner.setup()
    paths = find_paths()
    with only_instance(paths):
        rotate_token(paths.owner_secret)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        assert site._server is not None
        rows.port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        await asyncio.to_thread(write_record, paths, rows.port, WORD)
        try:
            yield rows
        finally:
            with contextlib.suppress(FileNotFoundError):
                paths.daemon.unlink()
            await runner.cleanup()


def space(phase: str, root: str = "/w", **fields: Any) -> dict[str, Any]:
    return {
        "root": root,
        "phase": phase,
        "percentage": 50.0,
        "files_tracked": 1234,
        "files_processed": 617,
        "note": "",
        "counters": {},
        **fields,
    }


class Client:
    """Tells one state after the other, then the last for ever."""

    def __init__(self, states: Iterable[list[dict[str, Any]]], error: str = "") -> None:
        self.states = list(states)
        self.error = error
        self.asked = 0

    async def ask(self, service: Service, body: Json) -> Json:
        self.asked += 1
        spaces = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        state = "error" if self.error else "indexing"
        return {"state": state, "error": self.error, "workspaces": spaces}


def client(*states: list[dict[str, Any]], error: str = "") -> LocalClient:
    return cast(LocalClient, Client(states, error))
