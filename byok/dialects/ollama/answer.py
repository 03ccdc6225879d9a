"""Ollama: decoding the answers of `/api/chat` and `/api/generate`.

Each line is an object; the last one has `done: true`, the reason and the counts. A
whole answer is that last line alone. An error inside a stream is a line `{"error"}`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from byok.core.chat import NO_ORIGIN, Origin, ProviderData
from byok.core.errors import UpstreamEmpty
from byok.core.events import (
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from byok.core.wire.json_body import SurrogateBuffer, write_json
from byok.core.wire.json_fields import read_object, read_objects, read_text
from byok.dialects.answer_reader import NO_NAMES, AnswerReader, read_finish
from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import read_positive
from byok.dialects.presets import OLLAMA

_EMPTY_REASONS = frozenset({"load", "unload"})  # of a request without a prompt
REASONING = {"thinking": True}  # provider data: only the text is sent back


class OllamaAnswer(AnswerReader[Any]):
    """A Stage[Any, StreamEvent] that decodes the lines of an answer."""

    dialect = OLLAMA

    def __init__(
        self, tool_names: Mapping[str, str] = NO_NAMES, origin: Origin = NO_ORIGIN
    ) -> None:
        super().__init__(tool_names, origin)
        self._thinking = SurrogateBuffer()
        self._in_thought = False  # a block of reasoning has begun and not ended
        self._calls = 0
        self._plain = False  # a line with text only needs no further checks

    def feed(self, line: Any, /) -> Iterable[StreamEvent]:
        """Decode one line; events before a failure are emitted first."""
        try:
            message = line["message"]
            if self._plain and len(message) == 2 and "role" in message:
                text = message["content"]
                if type(text) is str and not line["done"] and "error" not in line:
                    text = self._text.feed(text)  # as nearly all lines are
                    return (TextDelta(text),) if text else ()
        except (KeyError, TypeError):
            pass
        return super().feed(line)

    def _read(self, line: Any) -> None:
        if not self._done:
            self._read_json(line)

    def _read_document(self, line: dict[str, Any]) -> None:
        if line.get("error"):
            raise refusal_of(line)
        message = line.get("message")
        if not isinstance(message, dict):  # a line of `/api/generate`
            message = {
                "content": line.get("response"),
                "thinking": line.get("thinking"),
            }
        self._has_begun = True
        if thought := self._thinking.feed(read_text(message, "thinking")):
            self._in_thought, self._plain = True, False
            self._events.append(ThinkingDelta(thought))
        self._add_text(self._text.feed(read_text(message, "content")))
        for call in read_objects(message, "tool_calls"):
            self._end_thinking()
            self._events.append(self._call(call))
        if line.get("done") is True:
            self._read_end(line)

    def _add_text(self, text: str) -> None:
        if not text:
            return
        self._end_thinking()
        self._emit_text(text)
        self._plain = self._think is None

    def _end_thinking(self) -> None:
        """End a block of reasoning with data that carry its origin."""
        if self._in_thought:
            self._in_thought = False
            text = self._thinking.flush()
            data = ProviderData(self._origin, REASONING)
            self._events.append(ThinkingDelta(text, data))

    def _call(self, call: dict[str, Any]) -> ToolCallDelta:
        """Decode a call, which is always whole; its own index may be missing or 0."""
        function = read_object(call, "function")
        arguments, name = function.get("arguments"), read_text(function, "name")
        if not isinstance(arguments, str):
            arguments = write_json(arguments or {}).decode()
        index, self._calls = self._calls, self._calls + 1
        called = self._tool_names.get(name, name)
        return ToolCallDelta(index, read_text(call, "id"), called, arguments)

    def _read_end(self, line: dict[str, Any]) -> None:
        reason = read_text(line, "done_reason")
        if reason in _EMPTY_REASONS:
            raise UpstreamEmpty(
                f"it only answered that the model was told to {reason}.", retryable=True
            )
        self._finish = read_finish(reason)
        if self._calls and self._finish is FinishReason.STOP:
            self._finish = FinishReason.TOOL_CALLS
        # Old servers omit the count of a prompt in their cache.
        names = ("prompt_eval_count", "eval_count")
        counts = [read_positive(line.get(name)) for name in names]
        self._emit_end(Usage(*counts) if any(counts) else None)

    def _flush_parts(self) -> None:
        """Emit buffered text: half an emoji, half a tag."""
        self._end_thinking()
        self._add_text(self._text.flush())
        self._emit_partial_tag()
        self._plain = False
