"""Messages API: decoding the answer, streamed or whole.

Each branch follows from the API's reference ("Streaming Messages") or from recorded
answers. Tools that the API runs itself are not shown: their results are in the text.
"""

from collections.abc import Mapping
from typing import Any

from byok.core.chat import Origin, ProviderData
from byok.core.events import (
    Citation,
    Notice,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from byok.core.wire.json_body import SurrogateBuffer, write_json
from byok.core.wire.json_fields import read_object, read_objects, read_text
from byok.dialects.answer_reader import (
    WINDOW_EXCEEDED,
    EventReader,
    missing_end,
    read_finish,
)
from byok.dialects.error_bodies import refusal_of
from byok.dialects.presets import ANTHROPIC

_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_PAUSED = Notice("The model paused in the middle of its work: ask it to go on.")


class ThinkingBlock:
    """A block of reasoning, whose text and signature come in pieces."""

    def __init__(self, block: dict[str, Any] | None = None) -> None:
        self._block = block or {"type": "thinking"}
        signature = self._block.get("signature")
        self._signature = [signature] if isinstance(signature, str) else []
        self._buffer = SurrogateBuffer()
        self._texts: list[str] = []

    def think(self, piece: str) -> str:
        """Add a piece; return the text that is complete now."""
        if text := self._buffer.feed(piece):
            self._texts.append(text)
        return text

    def sign(self, piece: str) -> None:
        """Add a piece of the signature."""
        self._signature.append(piece)

    def flush(self) -> str:
        """Return the text that is still buffered."""
        if text := self._buffer.flush():
            self._texts.append(text)
        return text

    def block(self) -> dict[str, Any]:
        """Return the block to send back, {} if it is incomplete."""
        if self._block.get("type") == "redacted_thinking":
            data = self._block.get("data")
            return {"type": "redacted_thinking", "data": data} if data else {}
        if not (signature := "".join(self._signature)):
            return {}
        text = "".join(self._texts)
        return {"type": "thinking", "thinking": text, "signature": signature}


class AnthropicAnswer(EventReader):
    """A Stage[ServerSentEvent, StreamEvent] that decodes the answer of a chat."""

    dialect = ANTHROPIC

    def __init__(self, tool_names: Mapping[str, str], origin: Origin) -> None:
        super().__init__(tool_names, origin)
        self._counts: dict[str, int] = {}  # the newest token count of each kind
        self._index = 0  # of the last block
        self._thoughts: dict[int, ThinkingBlock] = {}  # open blocks, by index
        self._calls: dict[int, Any] = {}  # input in the block's start event, by index
        self._last = ""  # the last piece of the text
        self._needs_blank_line = False  # a tool of the API ran after the text

    def _read_document(self, event: dict[str, Any]) -> None:
        if event.get("type") != "content_block_delta":
            self._read_event(event)
        elif isinstance(delta := event.get("delta"), dict):
            if delta.get("type") == "text_delta":  # as in nearly all events
                self._add_text(delta.get("text"))
            else:
                self._read_delta(self._block_index(event), delta)

    def _read_delta(self, index: int, delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "input_json_delta":
            if index in self._calls:
                self._calls[index] = None  # the arguments come in pieces
                arguments = read_text(delta, "partial_json")
                self._events.append(ToolCallDelta(index, "", "", arguments))
        elif kind == "thinking_delta":
            if text := self._thought(index).think(read_text(delta, "thinking")):
                self._events.append(ThinkingDelta(text))
        elif kind == "signature_delta":
            self._thought(index).sign(read_text(delta, "signature"))
        elif kind == "citations_delta":
            self._cite(delta.get("citation"))

    def _thought(self, index: int) -> ThinkingBlock:
        """Return the open block of reasoning; some servers do not send its start."""
        if index not in self._thoughts:
            self._thoughts[index] = ThinkingBlock()
        return self._thoughts[index]

    def _block_index(self, event: dict[str, Any]) -> int:
        """Return the index of an event's block; without one, that of the last block."""
        index = event.get("index")
        return index if isinstance(index, int) else self._index

    def _read_event(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "content_block_start":
                self._index = self._block_index(event)
                self._start_block(self._index, event.get("content_block"))
            case "content_block_stop":
                self._stop_block(self._block_index(event))
            case "message_delta":
                self._read_counts(event.get("usage"))
                self._read_stop_reason(read_object(event, "delta"))
            case "message_start":
                self._has_begun = True
                self._read_message(event.get("message"))
            case "message_stop":
                if self._finish is None and self._calls:  # which may be incomplete
                    raise missing_end(has_begun=True)
                self._end()
            case "message":  # a whole answer, also for a stream by LiteLLM
                self._has_begun = True
                self._read_message(event)
                self._read_stop_reason(event)
                self._end()
            case "ping":
                pass
            case kind if kind == "error" or event.get("error") or event.get("detail"):
                raise refusal_of(event)
            case _:
                pass  # an event of a later version of the protocol

    def _read_counts(self, usage: Any) -> None:
        """Read a usage object; anything else is ignored.

        A `message_delta` has the counts of the whole answer so far. Counts that it
        lacks or has as 0 were in the `message_start`.
        """
        if not isinstance(usage, dict):
            return
        thinking = read_object(usage, "output_tokens_details").get("thinking_tokens")
        counts = {name: usage.get(name) for name in _COUNTS} | {"thinking": thinking}
        for name, value in counts.items():
            if type(value) is int and value > 0:
                self._counts[name] = value

    def _read_message(self, message: Any) -> None:
        """Read a message: it is empty at the start of a stream, else a whole answer."""
        if not isinstance(message, dict):
            return
        self._read_counts(message.get("usage"))
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            self._start_block(index, block)
            self._stop_block(index)

    def _read_stop_reason(self, message: dict[str, Any]) -> None:
        """Record the stop reason, which is null or empty at the start of a stream."""
        reason = read_text(message, "stop_reason")
        if not reason:
            return
        self._finish = read_finish(reason)
        self._fills_window = reason == WINDOW_EXCEEDED
        details = read_object(message, "stop_details")
        if explanation := read_text(details, "explanation"):
            self._flush_parts()
            self._events.append(Notice(f"The model gives as its reason: {explanation}"))
        if reason == "pause_turn":
            self._flush_parts()
            self._events.append(_PAUSED)

    def _start_block(self, index: int, block: Any) -> None:
        if not isinstance(block, dict):
            return
        match block.get("type"):
            case "text":
                ends_line = not self._last or self._last.endswith("\n")
                if self._needs_blank_line and not ends_line:
                    self._emit_text("\n\n")
                self._needs_blank_line = False
                self._add_text(block.get("text"))
                for citation in read_objects(block, "citations"):
                    self._cite(citation)
            case "tool_use":
                self._calls[index] = block.get("input")
                name, call_id = read_text(block, "name"), read_text(block, "id")
                name = self._tool_names.get(name, name)
                self._events.append(ToolCallDelta(index, call_id, name))
            case "thinking":
                self._thoughts[index] = thought = ThinkingBlock(dict(block))
                if text := thought.think(read_text(block, "thinking")):
                    self._events.append(ThinkingDelta(text))
            case "redacted_thinking":
                self._thoughts[index] = ThinkingBlock(dict(block))
            case _:  # a tool that the API runs itself, or its result
                self._needs_blank_line = True

    def _stop_block(self, index: int) -> None:
        """End a block: emit the data of reasoning, or input from the start event."""
        if thought := self._thoughts.pop(index, None):
            self._end_thought(thought)
        if call_input := self._calls.get(index):
            arguments = write_json(call_input).decode()
            self._calls[index] = None
            self._events.append(ToolCallDelta(index, "", "", arguments))

    def _end_thought(self, thought: ThinkingBlock) -> None:
        text, block = thought.flush(), thought.block()
        data = ProviderData(self._origin, {"block": block}) if block else None
        if text or data:
            self._events.append(ThinkingDelta(text, data))

    def _add_text(self, text: Any) -> None:
        if isinstance(text, str) and (text := self._text.feed(text)):
            self._last = text
            self._emit_text(text)

    def _cite(self, citation: Any) -> None:
        """Emit a source on the web; sources in the prompt have no URL."""
        if isinstance(citation, dict) and (url := read_text(citation, "url")):
            self._events.append(Citation(url, read_text(citation, "title")))

    def _flush_parts(self) -> None:
        """Emit buffered text: half an emoji, half a tag."""
        for thought in self._thoughts.values():
            if text := thought.flush():
                self._events.append(ThinkingDelta(text))
        self._add_text(self._text.flush())
        self._emit_partial_tag()

    def _end(self) -> None:
        if not (counts := self._counts):
            self._emit_end(None)
            return
        # The API's `input_tokens` do not include those of the cache.
        uncached, output, read, written = (counts.get(name, 0) for name in _COUNTS)
        prompt, thinking = uncached + read + written, counts.get("thinking", 0)
        usage = Usage(prompt, output, read, written, thinking, cache_told=True)
        self._emit_end(usage)
