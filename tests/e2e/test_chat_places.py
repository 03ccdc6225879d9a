"""The window from which a question about code comes is known by its chats."""

from collections.abc import Sequence
from typing import Any

from byok.core.record import current_record
from byok.search.retrieval.model_aids import ModelAids, ReadChunks
from byok.search.retrieval.query import Query
from byok.search.retrieval.rank import RankedFile
from tests.fakes.clients import blob, find_code, indexed
from tests.fakes.daemon import Editor, running
from tests.fakes.upstream import FakeUpstream


class Seen:
    """A rerank that only looks at where its question may go."""

    def __init__(self) -> None:
        self.places: list[frozenset[str] | None] = []

    async def __call__(
        self,
        question: str,
        query: Query,
        files: Sequence[RankedFile],
        read: ReadChunks,
    ) -> list[RankedFile]:
        self.places.append(current_record().chat_upstreams)
        return [*files]


async def chat(editor: Editor, window: str, model: str, **fields: Any) -> None:
    body = {"message": "Go on.", "model": model, **fields}
    headers = {"X-Request-Session-Id": window}
    assert (await editor.post("/chat-stream", body, headers=headers)).status == 200


async def test_questions_know_where_the_chats_of_their_window_went() -> None:
    async with FakeUpstream() as near, FakeUpstream() as far:
        upstreams = {
            "near": {"base_url": near.url, "model": "n"},
            "far": {"base_url": far.url, "model": "f"},
        }
        async with running({"upstreams": upstreams}) as editor:
            seen = Seen()
            editor.services.context.aids = ModelAids(rerank=seen)
            lion, bear = blob("lion.py", "lion\n"), blob("bear.py", "lions\n")
            blobs = {"added_blobs": await indexed(editor, lion, bear)}

            async def places(window: str) -> frozenset[str] | None:
                await find_code(editor, "the lions", window=window, blobs=blobs)
                return seen.places.pop()

            assert await places("a") is None
            await chat(editor, "a", "byok:far:x")
            await chat(editor, "b", "")
            await chat(editor, "b", "byok:far:x", silent=True)  # a job, not a chat
            assert await places("a") == frozenset({"far"})
            assert await places("b") == frozenset({"near"})
            assert await places("c") is None
