"""A chat as a job: streamed for /chat-stream, whole for /chat."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

from byok.augment.chat_reply import ChatReply, chunk, collect
from byok.augment.chat_request import decode_chat
from byok.augment.grounding import code_question
from byok.augment.reply_job import Defaults, ReplyFacts, ReplyJob
from byok.chat import ChatRequest, Json
from byok.code_query import FileChunk
from byok.errors import ByokError
from byok.events import StreamEvent


class ChatLines(ChatReply):
    """LineReply: the chunks of one chat answer."""

    keeps_part = True
    heartbeat: ClassVar[Json | None] = chunk()

    def __init__(self, chat: ChatRequest, facts: ReplyFacts) -> None:
        super().__init__(chat, facts.request_id)
        self._facts = facts

    @property
    def first(self) -> Json:
        """The chunk with the retrieval facts: what was shown, and what is unknown."""
        shown = [_shown_chunk(part) for part in self._facts.chunks]
        return {**chunk(), **self._facts.fields, "workspace_file_chunks": shown}


class ChatObject:
    """ObjectReply: the chunks of one chat answer, joined."""

    def __init__(self, chat: ChatRequest, facts: ReplyFacts) -> None:
        self._lines = ChatLines(chat, facts)
        self._found: list[Json] = [self._lines.first]

    @property
    def omitted_tools(self) -> list[str]:
        """Tool calls beyond the one that the client takes."""
        return self._lines.omitted_tools

    def feed(self, event: StreamEvent, /) -> Iterable[Json]:
        """Collect."""
        self._found += self._lines.feed(event)
        return ()

    def flush(self) -> Iterator[Json]:
        """Give the whole answer."""
        yield self._join(self._lines.flush())

    def fail_whole(self, error: ByokError, /) -> Json:
        """Keep what was said; an answer in which nothing was said is an error."""
        if not self._lines.has_output:
            raise error
        return self._join(self._lines.fail(error))

    def _join(self, rest: Iterable[Json]) -> dict[str, Any]:
        return collect([*self._found, *rest])


def chat_lines(
    body: Json, defaults: Defaults, on_node: Callable[[int], None]
) -> ReplyJob[ChatLines]:
    """Read a /chat-stream body."""
    chat = decode_chat(body, defaults, on_node)
    return ReplyJob(chat, partial(ChatLines, chat), code_question(body, chat))


def chat_object(
    body: Json, defaults: Defaults, on_node: Callable[[int], None]
) -> ReplyJob[ChatObject]:
    """Read a /chat body."""
    chat = decode_chat(body, defaults, on_node)
    return ReplyJob(chat, partial(ChatObject, chat), code_question(body, chat))


def _shown_chunk(part: FileChunk) -> Json:
    return {
        "char_start": part.start,
        "char_end": part.end,
        "blob_name": part.blob_name,
    }
