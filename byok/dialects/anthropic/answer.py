"""Messages API: decoding the answer, streamed or whole.

Each branch is there for the API's reference ("Streaming Messages") or for recorded
answers. Tools that the API runs itself are not shown: what they find is in the text.
"""

from collections.abc import Mapping
from typing import Any

from byok.core.chat import Origin, ProviderData
from byok.core.events import (
    Citation,
    FinishReason,
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

# Messages API: one block of a model's reasoning while it comes.


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

    def rest(self) -> str:
        """Return the text that was held back."""
        if text := self._buffer.flush():
            self._texts.append(text)
        return text

    def block(self) -> dict[str, Any]:
        """Return the block to send back, {} if it is not a complete one."""
        if self._block.get("type") == "redacted_thinking":
            data = self._block.get("data")
            return {"type": "redacted_thinking", "data": data} if data else {}
        if not (signature := "".join(self._signature)):
            return {}
        text = "".join(self._texts)
        return {"type": "thinking", "thinking": text, "signature": signature}


# Token counts in answers of the Messages API.


_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class UsageCounter:
    """Keeps the newest count of each kind.

    The counts of a `message_delta` are those of the whole answer so far; what it lacks
    or has as 0 was in the `message_start`.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def note(self, usage: Any) -> None:
        """Read a usage object; anything else is ignored."""
        if not isinstance(usage, dict):
            return
        thinking = read_object(usage, "output_tokens_details").get("thinking_tokens")
        found = {name: usage.get(name) for name in _COUNTS} | {"thinking": thinking}
        for name, value in found.items():
            if type(value) is int and value > 0:
                self._counts[name] = value

    def usage(self) -> Usage | None:
        """Return the counts, None where there were none.

        The API's `input_tokens` are without those of the cache.
        """
        if not self._counts:
            return None
        fresh, output, read, written = (self._counts.get(n, 0) for n in _COUNTS)
        thinking = self._counts.get("thinking", 0)
        sent = fresh + read + written
        return Usage(sent, output, read, written, thinking, cache_told=True)


_PAUSED = Notice("The model paused in the middle of its work: ask it to go on.")


class AnthropicAnswer(EventReader):
    """Stage[ServerSentEvent, StreamEvent]: decodes the answer of a chat."""

    dialect = ANTHROPIC

    def __init__(self, tool_names: Mapping[str, str], origin: Origin) -> None:
        super().__init__(tool_names, origin)
        self._usage = UsageCounter()
        self._index = 0  # of the last block
        self._thoughts: dict[int, ThinkingBlock] = {}  # open blocks, by index
        self._calls: dict[int, Any] = {}  # input given with the block, by index
        self._finish: FinishReason | None = None
        self._fills_window = False
        self._last = ""  # the last piece of the text
        self._is_apart = False  # a tool of the API's own ran behind it

    def _end_if_finished(self) -> None:
        if self._finish is not None:
            self._end()

    def _read_document(self, event: dict[str, Any]) -> None:
        if event.get("type") != "content_block_delta":
            self._event(event)
        elif isinstance(delta := event.get("delta"), dict):
            if delta.get("type") == "text_delta":  # nearly all of them are just that
                self._say(delta.get("text"))
            else:
                self._delta(self._place(event), delta)

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "input_json_delta":
            if index in self._calls:
                self._calls[index] = None  # the arguments come in pieces
                arguments = read_text(delta, "partial_json")
                self._out.append(ToolCallDelta(index, "", "", arguments))
        elif kind == "thinking_delta":
            if text := self._thought(index).think(read_text(delta, "thinking")):
                self._out.append(ThinkingDelta(text))
        elif kind == "signature_delta":
            self._thought(index).sign(read_text(delta, "signature"))
        elif kind == "citations_delta":
            self._cite(delta.get("citation"))

    def _thought(self, index: int) -> ThinkingBlock:
        """Return the open block of reasoning, or open one: a server left it out."""
        if index not in self._thoughts:
            self._thoughts[index] = ThinkingBlock()
        return self._thoughts[index]

    def _place(self, event: dict[str, Any]) -> int:
        """Return the index of a block; where it is missing, that of the last one."""
        index = event.get("index")
        return index if isinstance(index, int) else self._index

    def _event(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "content_block_start":
                self._index = self._place(event)
                self._start(self._index, event.get("content_block"))
            case "content_block_stop":
                self._stop(self._place(event))
            case "message_delta":
                self._message_delta(event)
            case "message_start":
                self._spoke = True
                self._message(event.get("message"))
            case "message_stop":
                self._message_stop()
            case "message":  # a whole answer; LiteLLM gives one for a stream, too
                self._spoke = True
                self._message(event)
                self._note_finish(event)
                self._finish = self._finish or FinishReason.STOP
                self._end()
            case "ping":
                pass
            case kind if kind == "error" or event.get("error") or event.get("detail"):
                raise refusal_of(event)
            case _:
                pass  # a later version of the protocol may say more

    def _message(self, message: Any) -> None:
        """Read a message: empty at the start of a stream, else the whole answer."""
        if not isinstance(message, dict):
            return
        self._usage.note(message.get("usage"))
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            self._start(index, block)
            self._stop(index)

    def _message_delta(self, event: dict[str, Any]) -> None:
        self._usage.note(event.get("usage"))
        if isinstance(delta := event.get("delta"), dict):
            self._note_finish(delta)

    def _message_stop(self) -> None:
        """End the answer; without a reason nothing says that its calls are whole."""
        if self._finish is None and self._calls:
            raise missing_end(spoke=True)
        self._end()

    def _note_finish(self, message: dict[str, Any]) -> None:
        """Note the reason; the start of a stream has none, or one without meaning."""
        reason = read_text(message, "stop_reason")
        if not reason:
            return
        self._finish = read_finish(reason)
        self._fills_window = reason == WINDOW_EXCEEDED
        if why := read_text(read_object(message, "stop_details"), "explanation"):
            self._rest()
            self._out.append(Notice(f"The model gives as its reason: {why}"))
        if reason == "pause_turn":
            self._rest()
            self._out.append(_PAUSED)

    def _start(self, index: int, block: Any) -> None:
        if not isinstance(block, dict):
            return
        match block.get("type"):
            case "text":
                self._part_text()
                self._say(block.get("text"))
                for citation in read_objects(block, "citations"):
                    self._cite(citation)
            case "tool_use":
                self._calls[index] = block.get("input")
                name, call_id = read_text(block, "name"), read_text(block, "id")
                name = self._tool_names.get(name, name)
                self._out.append(ToolCallDelta(index, call_id, name))
            case "thinking":
                self._thoughts[index] = thought = ThinkingBlock(dict(block))
                if text := thought.think(read_text(block, "thinking")):
                    self._out.append(ThinkingDelta(text))
            case "redacted_thinking":
                self._thoughts[index] = ThinkingBlock(dict(block))
            case _:  # a tool that the API runs itself, or its result
                self._is_apart = True

    def _stop(self, index: int) -> None:
        """End a block: hand on the whole of it, or arguments that came with it."""
        if thought := self._thoughts.pop(index, None):
            self._end_thought(thought)
        if given := self._calls.get(index):
            arguments = write_json(given).decode()
            self._calls[index] = None
            self._out.append(ToolCallDelta(index, "", "", arguments))

    def _end_thought(self, thought: ThinkingBlock) -> None:
        rest, block = thought.rest(), thought.block()
        data = ProviderData(self._origin, {"block": block}) if block else None
        if rest or data:
            self._out.append(ThinkingDelta(rest, data))

    def _part_text(self) -> None:
        """Part a text by a blank line from the one before a tool of the API's own."""
        if self._is_apart and self._last and not self._last.endswith("\n"):
            self._give_text("\n\n")
        self._is_apart = False

    def _say(self, text: Any) -> None:
        if isinstance(text, str) and (text := self._text.feed(text)):
            self._last = text
            self._give_text(text)

    def _cite(self, citation: Any) -> None:
        """Note a source on the web; documents of the prompt have no address."""
        if isinstance(citation, dict) and (url := read_text(citation, "url")):
            self._out.append(Citation(url, read_text(citation, "title")))

    def _rest(self) -> None:
        """Give the text that was held back: half an emoji."""
        for thought in self._thoughts.values():
            if rest := thought.rest():
                self._out.append(ThinkingDelta(rest))
        self._say(self._text.flush())
        self._give_held_tag()

    def _end(self) -> None:
        self._give_end(
            self._finish or FinishReason.STOP,
            self._usage.usage(),
            fills_window=self._fills_window,
        )
