"""Write the chunks of a chat answer for the client.

Order: retrieval facts, text deltas, and for each block of the answer one node, in the
order of the blocks (thinking, text, tool call). Clients store nodes, not deltas, so the
text comes once more as a node. Then usage, and always exactly one chunk with a stop
reason. Sources: recorded replies of the hosted service, and the clients' SDK.
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


class StopReason(IntEnum):
    """The stop reasons of the client's protocol."""

    UNSPECIFIED = 0
    END_TURN = 1
    MAX_TOKENS = 2
    TOOL_USE = 3
    SAFETY = 4


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


# Number the nodes of an answer, and keep them in the order of its blocks.


class NodeDraft(Struct, frozen=True):
    """A node that has no number yet."""

    kind: ResponseNode
    content: str = ""
    payload: Json = field(default_factory=dict)


class NodeWriter:
    """Writes nodes, a chunk each, or holds them until an earlier call is complete.

    Clients store the nodes of an answer in their order, so the nodes after a call wait
    for it. The text deltas do not wait: they are not nodes.
    """

    def __init__(self) -> None:
        self._written = 0
        self._held: list[list[NodeDraft]] = []  # empty as long as nothing waits
        self._places: dict[str, list[NodeDraft]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no node was written and none is held."""
        return not self._written and not any(self._held)

    def write(self, *drafts: NodeDraft) -> list[dict[str, Any]]:
        """Write nodes, or hold them if an earlier call is open."""
        if self._held:
            self._held.append(list(drafts))
            return []
        return [self._number(draft) for draft in drafts]

    def reserve(self, call_id: str) -> None:
        """Reserve the place of a call; all later nodes are held."""
        self._held.append(self._places.setdefault(call_id, []))

    def write_call(self, call_id: str, *drafts: NodeDraft) -> list[dict[str, Any]]:
        """Write the nodes of a call, in its reserved place if it has one."""
        place = self._places.pop(call_id, None)
        if place is None:
            return self.write(*drafts)
        place += drafts
        return []

    def release(self) -> list[dict[str, Any]]:
        """Write everything that is held; no more calls will come."""
        held, self._held = self._held, []
        return [self._number(draft) for drafts in held for draft in drafts]

    def _number(self, draft: NodeDraft) -> dict[str, Any]:
        self._written += 1
        node = {"id": self._written, "type": draft.kind, "content": draft.content}
        return chunk("", {**node, **draft.payload})


# The list of sources under an answer, as lines of byok's own.


_MOST = 40
_LONGEST = 200  # characters of a title


def source_lines(
    sources: Mapping[str, str], say: Callable[[str], str] = str
) -> Iterator[str]:
    """Write a heading and one numbered line for each source; nothing without one.

    `sources` maps addresses to titles, which may be empty; `say` translates.
    """
    found = [(" ".join(url.split()), title) for url, title in sources.items()]
    found = [(url, title) for url, title in found if url]
    if found:
        yield say("Sources:")
    for number, (url, title) in enumerate(found[:_MOST], 1):
        words = " ".join(title.split())[:_LONGEST]
        yield f"{number}. {words} {url}" if words else f"{number}. {url}"
    if len(found) > _MOST:
        yield say(f"and {len(found) - _MOST} more.")


STOP_REASONS = {
    FinishReason.STOP: StopReason.END_TURN,
    FinishReason.TOOL_CALLS: StopReason.END_TURN,  # used if no call followed
    FinishReason.LENGTH: StopReason.MAX_TOKENS,
    FinishReason.CONTENT_FILTER: StopReason.SAFETY,
}


_NOTHING = Notice(
    "The model gave an empty answer. Try again, or use another model.", "upstream_empty"
)


class ChatReply:
    """LineReply that writes the chunks of one chat answer."""

    keeps_part: ClassVar[bool] = True
    heartbeat: ClassVar[Json | None] = chunk()

    def __init__(self, chat: ChatRequest, facts: ReplyFacts) -> None:
        self._facts = facts
        self._say = facts.say
        self._silent = chat.silent
        self._verbatim = chat.verbatim
        self._asked = chat.is_question and facts.is_asked
        self._tool_use_start = chat.client_tool_use_start
        self._origin = {tool.name: tool for tool in chat.tools}
        self._nodes = NodeWriter()
        self._has_said = False  # a node with text was written
        self._text = bytearray()  # a list takes 90 bytes more for each piece
        self._thinking: list[str] = []
        self._calls = 0
        self._usage: Usage | None = None
        self._finish: FinishReason | None = None
        self._notices: list[Notice] = []
        self._sources: dict[str, str] = {}  # titles by address
        self._names_sources = not (chat.silent or chat.verbatim)

    @property
    def first(self) -> Json:
        """The chunk with the retrieval facts: code shown, blobs unknown."""
        shown = [
            {"char_start": c.start, "char_end": c.end, "blob_name": c.blob_name}
            for c in self._facts.chunks
        ]
        return {**chunk(), **self._facts.fields, "workspace_file_chunks": shown}

    @property
    def _text_so_far(self) -> str:
        """The text since the last node."""
        return self._text.decode("utf-8", "surrogatepass")

    @property
    def has_output(self) -> bool:
        """Whether anything from the model was written or is held back."""
        begun = self._text or self._thinking
        return bool(begun or not self._nodes.is_empty)

    @property
    def _may_tell_now(self) -> bool:
        """Whether a notice may stand above the answer: before any part of it."""
        return not (self._silent or self._verbatim or self.has_output)

    @property
    def _is_blank(self) -> bool:
        """Whether the user would see an empty answer."""
        failed = any(notice.code for notice in self._notices)
        said = self._has_said or bool(self._text_so_far.strip())
        return self._asked and not (self._silent or self._calls or failed or said)

    def feed(self, event: StreamEvent, /) -> Iterable[Json]:
        """Write the chunks of one event."""
        match event:
            case TextDelta(text=text):
                before = self._flush_thinking() if self._thinking else []
                self._text += text.encode("utf-8", "surrogatepass")
                return [*before, chunk(text)]
            case ThinkingDelta(text=text):
                if self._text or event.provider_data:
                    return self._think(event)
                self._thinking.append(text)
            case ToolCallPlace(call_id=call_id):
                return self._reserve(call_id)
            case ToolCall():
                return self._call(event)
            case ToolCallDelta():
                pass  # the assembler turns it into a ToolCall
            case Notice(is_restart=True) if self._thinking:
                self._thinking.clear()
                return self.feed(event)
            case Notice(text=text, at_once=True) if self._may_tell_now:
                return (chunk(f"{NOTICE}{self._line_of(text)}\n\n"),)
            case _:
                self._keep(event)
        return ()

    def _keep(self, event: Usage | Finish | Notice | Citation) -> None:
        """Keep what is written at the end."""
        match event:
            case Usage():
                self._usage = event
            case Finish(reason=reason):
                self._finish = reason
            case Notice():
                self._note(event)
            case Citation(url=url, title=title):
                if self._names_sources and (title or url not in self._sources):
                    self._sources[url] = title
            case _:
                assert_never(event)

    def flush(self) -> Iterable[Json]:
        """Write the end of a complete turn."""
        stop = STOP_REASONS[self._finish or FinishReason.STOP]
        if self._calls and stop is StopReason.END_TURN:
            stop = StopReason.TOOL_USE
        if self._is_blank and stop is StopReason.END_TURN:
            self._notices.append(_NOTHING)
        failed = (notice for notice in self._notices if notice.code)
        error = next(((notice.code, notice.text) for notice in failed), None)
        return self._end(stop, error)

    def fail(self, error: ByokError) -> Iterable[Json]:
        """Write the end of a turn that failed; the text so far is kept."""
        self._notices.append(Notice(error.sentence, error.code))
        broke = isinstance(error, UpstreamError) or error.status >= 500
        stop = StopReason.UNSPECIFIED if broke else StopReason.END_TURN
        return self._end(stop, (error.code, error.sentence))

    def _end(self, stop: StopReason, error: tuple[str, str] | None) -> list[Json]:
        out = [*self._flush_thinking(), *self._flush_text(), *self._nodes.release()]
        notices = [self._line_of(notice.text) for notice in self._notices]
        for line in (*source_lines(self._sources, self._say), *notices):
            out.append(chunk(f"\n{NOTICE}{line}"))
        if usage := self._usage:
            counts = {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cache_read_input_tokens": usage.cache_read_tokens,
                "cache_creation_input_tokens": usage.cache_creation_tokens,
            }
            draft = NodeDraft(ResponseNode.TOKEN_USAGE, "", {"token_usage": counts})
            out += self._nodes.write(draft)
        [last] = self._nodes.write(NodeDraft(ResponseNode.MAIN_TEXT_FINISHED))
        last["stop_reason"] = stop
        if error:
            last["error"] = self._facts.failure(*error)
        return [*out, last]

    def _line_of(self, text: str) -> str:
        return self._say(" ".join(text.split()))

    def _note(self, notice: Notice) -> None:
        """Keep a notice once; an earlier answer of the turn may have brought it."""
        if not self._silent and notice not in self._notices:
            self._notices.append(notice)

    def _think(self, event: ThinkingDelta) -> list[Json]:
        """Collect thinking; the text before it ends its own block."""
        out: list[Json] = []
        if not self._silent and self._text_so_far.strip():
            out += self._flush_text()
        self._thinking.append(event.text)
        if event.provider_data:
            out += self._flush_thinking(event.provider_data)
        return out

    def _reserve(self, call_id: str) -> list[Json]:
        """Reserve the place of a call that is not complete yet."""
        before = [*self._flush_thinking(), *self._flush_text()]
        self._nodes.reserve(call_id)
        return before

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
        self._has_said = self._has_said or bool(text.strip())
        draft = NodeDraft(ResponseNode.RAW_RESPONSE, text)
        return [*self._nodes.write(draft)] if text else []

    def _call(self, call: ToolCall) -> list[Json]:
        before = [*self._flush_thinking(), *self._flush_text()]
        self._calls += 1
        use: dict[str, Any] = {
            "tool_use_id": call.id,
            "tool_name": call.name,
            "input_json": call.arguments,
            "is_partial": False,
        }
        tool = self._origin.get(call.name)
        if tool and tool.mcp_server_name:
            use["mcp_server_name"] = tool.mcp_server_name
            use["mcp_tool_name"] = tool.mcp_tool_name
        drafts = [NodeDraft(ResponseNode.TOOL_USE, "", {"tool_use": use})]
        if self._tool_use_start:
            start = {**use, "is_partial": True}  # clients act on the node after it
            begun = NodeDraft(ResponseNode.TOOL_USE_START, "", {"tool_use": start})
            drafts.insert(0, begun)
        return [*before, *self._nodes.write_call(call.id, *drafts)]


def collect(chunks: Iterable[Json]) -> dict[str, Any]:
    """Join the chunks of one answer to the single object of /chat."""
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
