"""The endpoint /mcp: code search for any agent. Loads the MCP SDK on first use."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from aiohttp.web_response import StreamResponse
from msgspec import Struct

from byok.core.chat import Json
from byok.core.errors import IndexInUse
from byok.core.routing import Service
from byok.features.running import Features
from byok.search.index.files.roots import choose_root
from byok.server.http.reply import HttpExchange

if TYPE_CHECKING:
    from byok.server.mcp.transport import MessageServer


class DaemonCode(Struct, eq=False):
    """Code search in the daemon itself, for agents that name their workspace.

    `handlers` are the handlers of the services, by service name.
    """

    handlers: Mapping[str, Callable[[Json], Awaitable[Json]]]
    features: Features

    async def ask(self, service: Service, body: Json) -> Json:
        """Answer a request about code."""
        return await self.handlers[service](body)

    async def remembers(self) -> bool:
        """Tell whether conversations are remembered."""
        return self.features.recalls

    async def find_roots(self, workspace: str) -> list[str]:
        """Return the workspace that an agent named, or the only one.

        Raises:
            BadRequest: it is no workspace, or none was named and there are several.
        """
        status = await self.ask(Service.INDEX_STATUS, {})
        roots = [str(space["root"]) for space in status["workspaces"]]
        return [choose_root(roots, workspace)]

    async def search_text(self, question: str, error: IndexInUse) -> str:
        """Raise the error: unlike a client, the daemon cannot start one that has it.

        Raises:
            IndexInUse: always.
        """
        raise error


class ToolEndpoint:
    """Answers MCP messages without sessions."""

    def __init__(self, source: DaemonCode) -> None:
        self._source = source
        self._server: MessageServer | None = None

    async def answer(self, exchange: HttpExchange, body: Json) -> StreamResponse:
        """Answer the message in a body."""
        if self._server is None:
            module_name = "byok.server.mcp.transport"
            module = await asyncio.to_thread(import_module, module_name)
            self._server = module.MessageServer(self._source)
        return await self._server.answer(exchange, body)
