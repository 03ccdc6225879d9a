"""Write the chunks of a chat answer for the client.

Order: retrieval facts, text deltas, and one node for each block of the answer, in the
order of the blocks (thinking, text, tool call). Clients store nodes, not deltas, so the
text is repeated as a node. Then usage, and always exactly one chunk with a stop reason.
Sources: recorded replies of the hosted service, and the clients' SDK.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, ClassVar, assert_never

from msgspec import Struct, field

from byok.core.chat import ChatRequest, Json, ProviderData, ToolCall
from byok.core.errors import ByokError, UpstreamError
from byok.core.events import (
    Citation,
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallPlace,
    Usage,
)
from byok.core.wire.encrypted_content import write_encrypted
from byok.protocols.augment.history import NOTICE
from byok.protocols.augment.nodes import ResponseNode
from byok.protocols.augment.reply_job import ReplyFacts

_MAX_SOURCES = 40
_MAX_TITLE_CHARS = 200
_EMPTY_ANSWER = Notice(
    "The model gave an empty answer. Try again, or use another model.", "upstream_empty"
)


class StopReason(IntEnum):
    """The stop reasons of the client's protocol."""

    UNSPECIFIED = 0
    END_TURN = 1
    MAX_TOKENS = 2
    TOOL_USE = 3
    SAFETY = 4


STOP_REASONS = {
    FinishReason.STOP: StopReason.END_TURN,
    FinishReason.TOOL_CALLS: StopReason.END_TURN,  # used if no call followed
    FinishReason.LENGTH: StopReason.MAX_TOKENS,
    FinishReason.CONTENT_FILTER: StopReason.SAFETY,
}


def chunk(
    text: str = "", *nodes: Json, stop: StopReason | None = None
) -> dict[str, Any]:
    """Return a chunk with all seven keys that the hosted service sends."""
    return {
        "text": text,
        "nodes": list(nodes),
        "stop_reason": stop,
        "unknown_blob_names": [],
        "checkpoint_not_found": False,
        "workspace_file_chunks": [],
        "incorporated_external_sources": [],
    }


class ChatReply:
    """A LineReply that writes the chunks of one chat answer."""

    keeps_part: ClassVar[bool] = True
    heartbeat: ClassVar[Json | None] = chunk()

    def __init__(self, chat: ChatRequest, facts: ReplyFacts) -> None:
        self._facts = facts
        self._say = facts.say
        self._silent = chat.silent
        self._verbatim = chat.verbatim
        self._needs_answer = chat.is_question and facts.is_asked
        self._tool_use_start = chat.client_tool_use_start
        self._tools = {tool.name: tool for tool in chat.tools}
        self._nodes = NodeWriter()
        self._has_text_node = False  # one that is not blank
        self._text = bytearray()  # since the last node; a list takes 90 bytes a piece
        self._thinking: list[str] = []
        self._calls = 0
        self._usage: Usage | None = None
        self._finish: FinishReason | None = None
        self._notices: list[Notice] = []
        self._sources: dict[str, str] = {}  # titles by URL
        self._shows_sources = not (chat.silent or chat.verbatim)

    @property
    def first(self) -> Json:
        """The chunk with the retrieval facts: code in the prompt, unknown blobs."""
        code = [
            {"char_start": c.start, "char_end": c.end, "blob_name": c.blob_name}
            for c in self._facts.chunks
        ]
        return {**chunk(), **self._facts.fields, "workspace_file_chunks": code}

    @property
    def _text_so_far(self) -> str:
        """The text since the last node."""
        return self._text.decode("utf-8", "surrogatepass")

    @property
    def has_output(self) -> bool:
        """Whether anything from the model was written or is buffered."""
        buffered = self._text or self._thinking
        return bool(buffered or not self._nodes.is_empty)

    @property
    def _is_blank(self) -> bool:
        """Whether the user would see an empty answer."""
        has_failed = any(notice.code for notice in self._notices)
        has_text = self._has_text_node or bool(self._text_so_far.strip())
        is_shown = self._needs_answer and not self._silent
        return is_shown and not (self._calls or has_failed or has_text)

    def feed(self, event: StreamEvent, /) -> Iterable[Json]:
        """Write the chunks of one event."""
        match event:
            case TextDelta(text=text):
                before = self._flush_thinking() if self._thinking else []
                self._text += text.encode("utf-8", "surrogatepass")
                return [*before, chunk(text)]
            case ThinkingDelta(text=text):
                if self._text or event.provider_data:
                    return self._add_thinking(event)
                self._thinking.append(text)
            case ToolCallPlace(call_id=call_id):
                before = [*self._flush_thinking(), *self._flush_text()]
                self._nodes.reserve(call_id)
                return before
            case ToolCall():
                return self._write_call(event)
            case ToolCallDelta():
                pass  # the assembler turns it into a ToolCall
            case Notice(is_restart=True) if self._thinking:
                self._thinking.clear()
                return self.feed(event)
            case Notice(text=text, at_once=True) if not (
                self._silent or self._verbatim or self.has_output
            ):  # above the answer
                return (chunk(f"{NOTICE}{self._line_of(text)}\n\n"),)
            case _:
                self._store(event)
        return ()

    def _store(self, event: Usage | Finish | Notice | Citation) -> None:
        """Store an event that is written at the end."""
        match event:
            case Usage():
                self._usage = event
            case Finish(reason=reason):
                self._finish = reason
            case Notice():  # unless an earlier answer of the turn had it
                if not self._silent and event not in self._notices:
                    self._notices.append(event)
            case Citation(url=url, title=title):
                if self._shows_sources and (title or url not in self._sources):
                    self._sources[url] = title
            case _:
                assert_never(event)

    def flush(self) -> Iterable[Json]:
        """Write the end of a complete turn."""
        stop = STOP_REASONS[self._finish or FinishReason.STOP]
        if self._calls and stop is StopReason.END_TURN:
            stop = StopReason.TOOL_USE
        if self._is_blank and stop is StopReason.END_TURN:
            self._notices.append(_EMPTY_ANSWER)
        failed = (notice for notice in self._notices if notice.code)
        error = next(((notice.code, notice.text) for notice in failed), None)
        return self._end(stop, error)

    def fail(self, error: ByokError) -> Iterable[Json]:
        """Write the end of a turn that failed; the text so far stays."""
        self._notices.append(Notice(error.sentence, error.code))
        is_broken = isinstance(error, UpstreamError) or error.status >= 500
        stop = StopReason.UNSPECIFIED if is_broken else StopReason.END_TURN
        return self._end(stop, (error.code, error.sentence))

    def _end(self, stop: StopReason, error: tuple[str, str] | None) -> list[Json]:
        chunks = [*self._flush_thinking(), *self._flush_text(), *self._nodes.release()]
        notices = [self._line_of(notice.text) for notice in self._notices]
        for line in (*source_lines(self._sources, self._say), *notices):
            chunks.append(chunk(f"\n{NOTICE}{line}"))
        if usage := self._usage:
            counts = {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cache_read_input_tokens": usage.cache_read_tokens,
                "cache_creation_input_tokens": usage.cache_creation_tokens,
            }
            draft = NodeDraft(ResponseNode.TOKEN_USAGE, "", {"token_usage": counts})
            chunks += self._nodes.write(draft)
        [last] = self._nodes.write(NodeDraft(ResponseNode.MAIN_TEXT_FINISHED))
        last["stop_reason"] = stop
        if error:
            last["error"] = self._facts.failure(*error)
        return [*chunks, last]

    def _line_of(self, text: str) -> str:
        return self._say(" ".join(text.split()))

    def _add_thinking(self, event: ThinkingDelta) -> list[Json]:
        """Collect thinking, which ends a block of text before it."""
        chunks: list[Json] = []
        if not self._silent and self._text_so_far.strip():
            chunks += self._flush_text()
        self._thinking.append(event.text)
        if event.provider_data:
            chunks += self._flush_thinking(event.provider_data)
        return chunks

    def _flush_thinking(self, provider_data: ProviderData | None = None) -> list[Json]:
        thought, self._thinking = "".join(self._thinking), []
        if self._silent or not (thought.strip() or provider_data):
            return []
        thinking = {"summary": thought, "content": None}
        if provider_data:
            thinking["encrypted_content"] = write_encrypted(provider_data)
        draft = NodeDraft(ResponseNode.THINKING, "", {"thinking": thinking})
        return [*self._nodes.write(draft)]

    def _flush_text(self) -> list[Json]:
        text = self._text_so_far
        self._text.clear()
        self._has_text_node = self._has_text_node or bool(text.strip())
        draft = NodeDraft(ResponseNode.RAW_RESPONSE, text)
        return [*self._nodes.write(draft)] if text else []

    def _write_call(self, call: ToolCall) -> list[Json]:
        before = [*self._flush_thinking(), *self._flush_text()]
        self._calls += 1
        use: dict[str, Any] = {
            "tool_use_id": call.id,
            "tool_name": call.name,
            "input_json": call.arguments,
            "is_partial": False,
        }
        tool = self._tools.get(call.name)
        if tool and tool.mcp_server_name:
            use["mcp_server_name"] = tool.mcp_server_name
            use["mcp_tool_name"] = tool.mcp_tool_name
        drafts = [NodeDraft(ResponseNode.TOOL_USE, "", {"tool_use": use})]
        if self._tool_use_start:
            partial = {**use, "is_partial": True}  # clients act on the node after it
            start = NodeDraft(ResponseNode.TOOL_USE_START, "", {"tool_use": partial})
            drafts.insert(0, start)
        return [*before, *self._nodes.write_call(call.id, *drafts)]


def collect(chunks: Iterable[Json]) -> dict[str, Any]:
    """Join the chunks of one answer into the single object of /chat."""
    whole = chunk()
    texts: list[str] = []
    for part in chunks:
        texts.append(part["text"])
        whole["nodes"] += part["nodes"]
        whole["unknown_blob_names"] += part["unknown_blob_names"]
        whole["workspace_file_chunks"] += part["workspace_file_chunks"]
        whole["checkpoint_not_found"] |= part["checkpoint_not_found"]
        if part["stop_reason"] is not None:
            whole["stop_reason"] = part["stop_reason"]
        if error := part.get("error"):
            whole["error"] = error
    whole["text"] = "".join(texts)
    return whole


class NodeDraft(Struct, frozen=True):
    """A node that has no number yet."""

    kind: ResponseNode
    content: str = ""
    payload: Json = field(default_factory=dict)


class NodeWriter:
    """A writer of numbered nodes, a chunk each, in the order of the answer's blocks.

    Clients store nodes in the order in which they come. So nodes after an incomplete
    call are buffered until it is complete. Text deltas are no nodes and do not wait.
    """

    def __init__(self) -> None:
        self._written = 0
        self._buffer: list[list[NodeDraft]] = []  # empty as long as no call is open
        self._slots: dict[str, list[NodeDraft]] = {}  # of open calls, in the buffer

    @property
    def is_empty(self) -> bool:
        """Whether no node was written or buffered."""
        return not self._written and not any(self._buffer)

    def write(self, *drafts: NodeDraft) -> list[dict[str, Any]]:
        """Write nodes, or buffer them if an earlier call is open."""
        if self._buffer:
            self._buffer.append(list(drafts))
            return []
        return [self._number(draft) for draft in drafts]

    def reserve(self, call_id: str) -> None:
        """Reserve a slot for an open call; all later nodes are buffered."""
        self._buffer.append(self._slots.setdefault(call_id, []))

    def write_call(self, call_id: str, *drafts: NodeDraft) -> list[dict[str, Any]]:
        """Write the nodes of a call, in its reserved slot if it has one."""
        slot = self._slots.pop(call_id, None)
        if slot is None:
            return self.write(*drafts)
        slot += drafts
        return []

    def release(self) -> list[dict[str, Any]]:
        """Write the buffered nodes; no more calls will come."""
        buffered, self._buffer = self._buffer, []
        return [self._number(draft) for drafts in buffered for draft in drafts]

    def _number(self, draft: NodeDraft) -> dict[str, Any]:
        self._written += 1
        node = {"id": self._written, "type": draft.kind, "content": draft.content}
        return chunk("", {**node, **draft.payload})


def source_lines(
    sources: Mapping[str, str], say: Callable[[str], str] = str
) -> Iterator[str]:
    """Yield a heading and one numbered line for each source; nothing without one.

    `sources` maps URLs to titles, which may be empty; `say` translates.
    """
    pages = [(" ".join(url.split()), title) for url, title in sources.items()]
    pages = [(url, title) for url, title in pages if url]
    if pages:
        yield say("Sources:")
    for number, (url, title) in enumerate(pages[:_MAX_SOURCES], 1):
        words = " ".join(title.split())[:_MAX_TITLE_CHARS]
        yield f"{number}. {words} {url}" if words else f"{number}. {url}"
    if len(pages) > _MAX_SOURCES:
        yield say(f"and {len(pages) - _MAX_SOURCES} more.")
