"""What a command answers in its own process, where no daemon runs."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from byok.core.chat import Json
from byok.core.platform.paths import Paths
from byok.core.routing import Service
from byok.search.retrieval.code_context import CodeContext
from byok.search.vectors.service import EmbeddingService
from byok.server.code_endpoints import CodeEndpoints
from byok.server.daemon_endpoints import embed_handlers
from byok.settings import Settings
from byok.wiring.embedders import make_idle_plan, make_idle_service
from byok.wiring.services import open_context


class OwnAnswers:
    """Answers questions about code and about vectors; makes no vectors."""

    def __init__(self, context: CodeContext, vectors: EmbeddingService) -> None:
        self._handlers = {
            **CodeEndpoints(context).handlers,
            **embed_handlers(vectors),
        }

    async def answer(self, service: Service, body: Json) -> Json:
        """Answer a request.

        Raises:
            ByokError: the request is wrong, or the index cannot be used.
        """
        return await self._handlers[service](body)


@asynccontextmanager
async def open_answers(
    settings: Settings, paths: Paths, roots: Iterable[Path]
) -> AsyncIterator[OwnAnswers]:
    """Open the index, and follow the configured workspaces and `roots`.

    Raises:
        CannotStart: the database is damaged, or of a later version.
        IndexInUse: another process has the index open.
    """
    vectors = make_idle_service(paths)
    async with open_context(settings, paths, roots, vectors) as context:
        await vectors.configure(make_idle_plan(settings), context.open)
        yield OwnAnswers(context, vectors)
