"""Chat Completions: decoding the answer, of OpenAI and of compatible servers.

One reader decodes streamed chunks and whole answers. Only choice 0 counts. Each branch
follows from recorded answers of real providers.
"""

from collections.abc import Mapping
from typing import Any

from byok.core.chat import NO_ORIGIN, Origin, ProviderData
from byok.core.events import (
    FinishReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from byok.core.wire.json_body import SurrogateBuffer, write_json
from byok.core.wire.json_fields import read_object, read_text
from byok.core.wire.sse import ServerSentEvent
from byok.dialects.answer_reader import WINDOW_EXCEEDED, EventReader, missing_end
from byok.dialects.error_bodies import refusal_of
from byok.dialects.openai_chat.chunks import (
    DETAILS,
    SourceList,
    UsualDelta,
    is_error,
    is_whole_message,
    read_usage,
    reasoning,
    stricter_finish,
    texts,
    usual_delta,
)
from byok.dialects.openai_chat.reasoning import PARTS, ReasoningBlock
from byok.dialects.presets import OPENAI_CHAT


class OpenAIAnswer(EventReader):
    """A Stage[ServerSentEvent, StreamEvent] that decodes the answer of a chat."""

    dialect = OPENAI_CHAT

    def __init__(
        self, tool_names: Mapping[str, str], origin: Origin = NO_ORIGIN
    ) -> None:
        super().__init__(tool_names, origin)
        self._thinking = SurrogateBuffer()
        self._usage: Any = None
        self._block = ReasoningBlock()
        self._sources = SourceList()
        self._plain = False  # no block of reasoning, no think tag is open
        self._may_need_end = False  # a part came that the next tool call may end

    def _read(self, sse: ServerSentEvent) -> None:
        is_usual = self._has_begun and not (self._done or sse.event)
        if is_usual and (delta := usual_delta(sse.data)):
            self._read_usual_delta(delta)
        else:
            super()._read(sse)

    def _read_done_mark(self) -> None:
        self._end()

    def _read_usual_delta(self, delta: UsualDelta) -> None:
        """Read a delta as `_read_part` would read it, but faster."""
        if thought := delta.reasoning_content:
            self._add_reasoning(thought, "reasoning_content")
        elif thought := delta.reasoning:
            self._add_reasoning(thought, "reasoning")
        if text := delta.content:
            self._add_text(self._text.feed(text))
        if calls := delta.tool_calls:
            if self._may_need_end:
                self._end_blocks()
            self._events += [
                ToolCallDelta(call.index, arguments=call.function.arguments)
                for call in calls
            ]

    def _end(self) -> None:
        if self._finish is None and not (self._has_begun or self._usage):
            raise missing_end(has_begun=False)
        self._close(is_whole=self._finish is not FinishReason.LENGTH)
        self._events.extend(self._sources.pop_all())
        self._emit_end(read_usage(self._usage))

    def _flush_parts(self) -> None:
        self._close(is_whole=False)

    def _close(self, *, is_whole: bool) -> None:
        """Emit buffered parts: half an emoji, half a tag, the data of a block.

        A block that was cut off gets no data: without its signature it is refused.
        """
        self._end_block(is_whole=is_whole)
        self._add_text(self._text.flush())
        self._emit_partial_tag()

    def _read_document(self, chunk: dict[str, Any]) -> None:
        if chunk.get("error") or is_error(chunk):
            raise refusal_of(chunk)
        self._sources.add(chunk)
        choices = chunk.get("choices")
        if isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict) and not choice.get("index"):
                    self._read_choice(choice)
        # The last usage counts; it may be here, in x_groq, or in a choice.
        if usage := chunk.get("usage"):
            self._usage = usage
        elif isinstance(groq := chunk.get("x_groq"), dict):
            self._usage = groq.get("usage") or self._usage

    def _read_choice(self, choice: dict[str, Any]) -> None:
        part, message = choice.get("delta"), choice.get("message")
        # Some servers repeat the whole message at the end of a stream.
        is_whole = not self._has_begun and is_whole_message(message, part)
        if is_whole:
            part = message
        if isinstance(part, dict):
            self._read_part(part)
        if choice.get("error"):
            raise refusal_of(choice)
        if usage := choice.get("usage"):
            self._usage = usage
        if reason := choice.get("finish_reason"):
            self._finish = stricter_finish(self._finish, reason)
            self._fills_window = self._fills_window or reason == WINDOW_EXCEEDED
        if reason := choice.get("native_finish_reason"):
            self._finish = stricter_finish(self._finish, reason, only_length=True)
        if is_whole and self._finish is None:
            self._finish = FinishReason.STOP  # nothing can follow a whole answer

    def _read_part(self, part: dict[str, Any]) -> None:
        self._has_begun = True
        calls = part.get("tool_calls")
        if len(part) > 1 or not calls:
            self._read_delta(part)
        if calls and isinstance(calls, list):
            if self._may_need_end:
                self._end_blocks()
            for call in calls:
                if isinstance(call, dict):
                    self._events.append(self._decode_call(call))

    def _read_delta(self, part: dict[str, Any]) -> None:
        """Decode a delta except its tool calls."""
        self._may_need_end = True
        content = part.get("content")
        thought, form = reasoning(part)
        if form:
            self._add_reasoning(thought, form)
        if details := part.get(DETAILS):
            self._block.add_details(details)
            self._plain = False
        if extra := part.get("extra_content"):
            self._block.add_extra(extra)
        if isinstance(content, str):
            self._add_text(self._text.feed(content))
        elif isinstance(content, list):
            self._read_content_parts(content)
        elif isinstance(audio := part.get("audio"), dict):  # of models that speak
            self._add_text(self._text.feed(read_text(audio, "transcript")))
        if isinstance(refusal := part.get("refusal"), str):
            self._add_text(self._text.feed(refusal))
        if part.get("annotations"):
            self._sources.add(part)
        if isinstance(call := part.get("function_call"), dict):
            self._events.append(self._decode_call({"index": 0, "function": call}))

    def _read_content_parts(self, parts: list[Any]) -> None:
        """Read list content, as Mistral's reasoning models send it."""
        for part in parts:
            if not isinstance(part, dict):
                continue
            if isinstance(text := part.get("text"), str):
                self._add_text(self._text.feed(text))
            elif (thought := part.get("thinking")) is not None:
                self._add_reasoning(texts(thought), PARTS)

    def _add_reasoning(self, text: str, form: str) -> None:
        if form != DETAILS:
            self._block.add_form(form)
        self._plain, self._may_need_end = False, True
        if thought := self._thinking.feed(text):
            self._events.append(ThinkingDelta(thought))

    def _end_blocks(self) -> None:
        """End the blocks of reasoning before a tool call."""
        self._end_block()
        if self._think is not None:
            self._events.extend(self._think.end())
        self._may_need_end = False

    def _end_block(self, *, is_whole: bool = True) -> None:
        """End the block of reasoning before what follows it, with its data."""
        text = self._thinking.flush()
        block = self._block.pop_data() if self._block.is_open else {}
        data = ProviderData(self._origin, block) if block and is_whole else None
        if text or data:
            self._events.append(ThinkingDelta(text, data))
        self._plain = self._think is None

    def _add_text(self, text: str) -> None:
        if not text:
            return
        self._may_need_end = True
        if self._plain:
            self._events.append(TextDelta(text))
            return
        self._end_block()
        self._emit_text(text)
        self._plain = self._think is None

    def _decode_call(self, call: dict[str, Any]) -> ToolCallDelta:
        function, index = read_object(call, "function"), call.get("index")
        arguments, name = function.get("arguments"), read_text(function, "name")
        extra = call.get("extra_content")
        if not isinstance(arguments, str):
            is_object = isinstance(arguments, (dict, list))
            arguments = write_json(arguments).decode() if is_object else ""
        return ToolCallDelta(
            index if isinstance(index, int) else None,
            read_text(call, "id"),
            self._tool_names.get(name, name),
            arguments,
            # The signature of a Gemini model.
            ProviderData(self._origin, {"extra_content": extra}) if extra else None,
        )
