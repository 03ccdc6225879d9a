"""The reply jobs of /chat-stream (streamed) and /chat (one object)."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from msgspec.structs import replace

from byok.core.chat import ChatRequest, ContextPart, Json, Role, ToolCall
from byok.core.code_query import CodeQuestion
from byok.core.errors import ByokError
from byok.core.events import StreamEvent, ToolCallPlace
from byok.protocols.augment.blobs import attached_names, blob_names
from byok.protocols.augment.body import flag, integer
from byok.protocols.augment.chat_reply import ChatReply, StopReason, chunk, collect
from byok.protocols.augment.chat_request import decode_chat
from byok.protocols.augment.nodes import RequestNode, request_nodes
from byok.protocols.augment.reply_job import Defaults, ReplyFacts, ReplyJob
from byok.protocols.augment.text_reply import UNCHANGED, WholeText


def code_question(body: Json, chat: ChatRequest) -> CodeQuestion | None:
    """Return the code search for a chat; None if no code will be added.

    Agents search for themselves. A turn with tool results continues with the code that
    was found for the question before.
    """
    if chat.silent or not chat.question or chat.agent:
        return None
    kinds = {integer(node, "type") for node in request_nodes(body)}
    if RequestNode.TOOL_RESULT in kinds or flag(body, "disable_retrieval"):
        return None
    question = CodeQuestion(chat.question, blob_names(body), attached_names(body))
    return None if question.blobs.is_empty and not question.guided else question


def with_passages(chat: ChatRequest, text: str) -> ChatRequest:
    """Insert code before the words of the last message.

    It never goes into the system message: everything above the last message stays the
    same byte for byte, so that prompt caches hit.
    """
    if not text or not chat.messages or chat.messages[-1].role is not Role.USER:
        return chat
    *earlier, last = chat.messages
    last = replace(last, parts=(ContextPart(text), *last.parts))
    return replace(chat, messages=(*earlier, last))


class SilentReply(ChatReply):
    """A writer of a background job's answer, which waits until it is complete.

    The client uses any text as the result: a summary that replaces the history, a
    prompt that replaces the user's. So an incomplete answer is an error.
    """

    keeps_part = False

    def __init__(self, chat: ChatRequest, facts: ReplyFacts) -> None:
        super().__init__(chat, facts)
        self._answer = WholeText(UNCHANGED, facts)
        self._chunks: list[Json] = []

    def feed(self, event: StreamEvent, /) -> tuple[()]:
        """Collect the chunks, without tool calls: a background job offers no tools."""
        self._answer.feed(event)
        if not isinstance(event, (ToolCall, ToolCallPlace)):
            self._chunks += super().feed(event)
        return ()

    def flush(self) -> Iterator[Json]:
        """Write the complete answer.

        Raises:
            UpstreamGarbled: the answer is cut or empty.
        """
        if self._facts.is_asked:
            self._answer.whole()
        yield from self._chunks
        yield from super().flush()

    def fail(self, error: ByokError) -> Iterator[Json]:
        """End a failed answer, without a part of its text."""
        yield {**chunk(stop=StopReason.UNSPECIFIED), "error": self._facts.error(error)}


class ChatObject:
    """An ObjectReply that joins the chunks of one chat answer."""

    def __init__(self, chat: ChatRequest, facts: ReplyFacts) -> None:
        self._lines = _make_lines(chat, facts)
        self._chunks: list[Json] = [self._lines.first]

    def feed(self, event: StreamEvent, /) -> Iterable[Json]:
        """Collect the chunks."""
        self._chunks += self._lines.feed(event)
        return ()

    def flush(self) -> Iterator[Json]:
        """Return the whole answer."""
        yield self._join(self._lines.flush())

    def fail_whole(self, error: ByokError, /) -> Json:
        """Return the answer so far; raise the error if a part is useless or missing."""
        if not (self._lines.keeps_part and self._lines.has_output):
            raise error
        return self._join(self._lines.fail(error))

    def _join(self, end: Iterable[Json]) -> dict[str, Any]:
        return collect([*self._chunks, *end])


def chat_lines(body: Json, defaults: Defaults) -> ReplyJob[ChatReply]:
    """Decode the body of /chat-stream."""
    chat = decode_chat(body, defaults)
    return ReplyJob(chat, partial(_make_lines, chat), code_question(body, chat))


def chat_object(body: Json, defaults: Defaults) -> ReplyJob[ChatObject]:
    """Decode the body of /chat."""
    chat = decode_chat(body, defaults)
    return ReplyJob(chat, partial(ChatObject, chat), code_question(body, chat))


def _make_lines(chat: ChatRequest, facts: ReplyFacts) -> ChatReply:
    return (SilentReply if chat.silent else ChatReply)(chat, facts)
