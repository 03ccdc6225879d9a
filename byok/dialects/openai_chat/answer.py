"""Chat Completions: decoding the answer, of OpenAI and of compatible servers.

One reader decodes streamed chunks and whole answers. Only choice 0 counts. Each branch
is there for recorded answers of real providers.
"""

from collections.abc import Mapping
from typing import Any

from byok.core.chat import NO_ORIGIN, Origin, ProviderData
from byok.core.errors import UpstreamNotJson
from byok.core.events import (
    Finish,
    FinishReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from byok.core.wire.json_body import SurrogateBuffer, parse_json, write_json
from byok.core.wire.json_fields import read_object, read_text
from byok.core.wire.sse import ServerSentEvent
from byok.dialects.answer_reader import (
    CHAT_COMPLETIONS,
    AnswerReader,
    check_protocol,
    missing_end,
    read_error_body,
)
from byok.dialects.error_bodies import refusal_of
from byok.dialects.openai_chat.chunks import (
    DETAILS,
    WINDOW_EXCEEDED,
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

_OTHER_ADDRESS = (
    "Set base_url to the address of its OpenAI-compatible API, which usually ends in "
    "/v1."
)


class OpenAIAnswer(AnswerReader[ServerSentEvent]):
    """Stage[ServerSentEvent, StreamEvent]: decodes the answer of a chat."""

    def __init__(
        self, tool_names: Mapping[str, str], origin: Origin = NO_ORIGIN
    ) -> None:
        super().__init__(tool_names, origin)
        self._thinking = SurrogateBuffer()
        self._finish: FinishReason | None = None
        self._fills_window = False
        self._usage: Any = None
        self._block = ReasoningBlock()
        self._sources = SourceList()
        self._plain = False  # no block of reasoning is open, in whatever form
        self._has_more = False  # something came that a call may have to end

    def _end_if_finished(self) -> None:
        if self._finish is not None:
            self._end()

    def _read(self, sse: ServerSentEvent) -> None:
        if self._done:
            return
        if self._spoke and not sse.event and (delta := usual_delta(sse.data)):
            self._usual(delta)
            return
        data = sse.data.strip()
        if not data:
            return
        if data == b"[DONE]":
            self._end()
            return
        if sse.event == "error":
            raise refusal_of(read_error_body(data))
        try:
            chunk = parse_json(data, keep_halves=True)
        except (ValueError, RecursionError) as error:
            for chunk in _lines(data, error):
                self._chunk(chunk)
            if data.endswith(b"\n[DONE]"):
                self._end()
            return
        self._chunk(chunk)

    def _usual(self, delta: UsualDelta) -> None:
        """Read what `_part` would read of the same delta."""
        if thought := delta.reasoning_content:
            self._reason(thought, "reasoning_content")
        elif thought := delta.reasoning:
            self._reason(thought, "reasoning")
        if text := delta.content:
            self._say(self._text.feed(text))
        if calls := delta.tool_calls:
            if self._has_more:
                self._end_blocks()
            self._out += [
                ToolCallDelta(call.index, arguments=call.function.arguments)
                for call in calls
            ]

    def _end(self) -> None:
        if self._finish is None and not (self._spoke or self._usage):
            raise missing_end(spoke=False)
        self._done = True
        self._close(whole=self._finish is not FinishReason.LENGTH)
        self._out.extend(self._sources.take())
        if usage := read_usage(self._usage):
            self._out.append(usage)
        finish = self._finish or FinishReason.STOP
        self._out.append(Finish(finish, fills_window=self._fills_window))

    def _rest(self) -> None:
        self._close(whole=False)

    def _close(self, *, whole: bool) -> None:
        """Give what was held back: half an emoji, half a tag, the data of a block.

        A block that was cut off has no data: without its signature it is refused.
        """
        self._end_block(whole=whole)
        self._say(self._text.flush())
        self._give_held_tag()

    def _chunk(self, chunk: Any) -> None:
        if not self._spoke:
            check_protocol(chunk, CHAT_COMPLETIONS, _OTHER_ADDRESS)
        if not isinstance(chunk, dict):
            raise UpstreamNotJson("a part of its answer is not a JSON object.")
        if chunk.get("error") or is_error(chunk):
            raise refusal_of(chunk)
        self._sources.add(chunk)
        choices = chunk.get("choices")
        if isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict) and not choice.get("index"):
                    self._choice(choice)
        # The last usage counts; it comes here, in x_groq, or in a choice.
        if usage := chunk.get("usage"):
            self._usage = usage
        elif isinstance(groq := chunk.get("x_groq"), dict):
            self._usage = groq.get("usage") or self._usage

    def _choice(self, choice: dict[str, Any]) -> None:
        part, message = choice.get("delta"), choice.get("message")
        # Some repeat the whole message at the end of a stream: read it only once.
        is_whole = not self._spoke and is_whole_message(message, part)
        if is_whole:
            part = message
        if isinstance(part, dict):
            self._part(part)
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
            self._finish = FinishReason.STOP  # nothing can follow it

    def _part(self, part: dict[str, Any]) -> None:
        self._spoke = True
        calls = part.get("tool_calls")
        if len(part) > 1 or not calls:
            self._read_delta(part)
        if calls and isinstance(calls, list):
            if self._has_more:
                self._end_blocks()
            for call in calls:
                if isinstance(call, dict):
                    self._out.append(self._call(call))

    def _read_delta(self, part: dict[str, Any]) -> None:
        """Decode a delta except its tool calls."""
        self._has_more = True
        content = part.get("content")
        thought, form = reasoning(part)
        if form:
            self._reason(thought, form)
        if details := part.get(DETAILS):
            self._block.add_details(details)
            self._plain = False
        if extra := part.get("extra_content"):
            self._block.add_extra(extra)
        if isinstance(content, str):
            self._say(self._text.feed(content))
        elif isinstance(content, list):
            self._content_parts(content)
        elif isinstance(audio := part.get("audio"), dict):  # of models that speak
            self._say(self._text.feed(read_text(audio, "transcript")))
        if isinstance(refusal := part.get("refusal"), str):
            self._say(self._text.feed(refusal))
        if part.get("annotations"):
            self._sources.add(part)
        if isinstance(call := part.get("function_call"), dict):
            self._out.append(self._call({"index": 0, "function": call}))

    def _content_parts(self, parts: list[Any]) -> None:
        """Read list content, as Mistral's reasoning models send it."""
        for part in parts:
            if not isinstance(part, dict):
                continue
            if isinstance(text := part.get("text"), str):
                self._say(self._text.feed(text))
            elif (thought := part.get("thinking")) is not None:
                self._reason(texts(thought), PARTS)

    def _reason(self, text: str, form: str) -> None:
        if form != DETAILS:
            self._block.note_form(form)
        self._plain, self._has_more = False, True
        if thought := self._thinking.feed(text):
            self._out.append(ThinkingDelta(thought))

    def _end_blocks(self) -> None:
        """End what a tool call ends."""
        self._end_block()
        if self._think is not None:
            self._out.extend(self._think.end())
        self._has_more = False

    def _end_block(self, *, whole: bool = True) -> None:
        """End the block of reasoning before what follows it, with its data."""
        rest = self._thinking.flush()
        data = self._block.take() if self._block.is_open else {}
        own = ProviderData(self._origin, data) if data and whole else None
        if rest or own:
            self._out.append(ThinkingDelta(rest, own))
        self._plain = self._think is None

    def _say(self, text: str) -> None:
        if not text:
            return
        self._has_more = True
        if self._plain:
            self._out.append(TextDelta(text))
            return
        self._end_block()
        self._give_text(text)
        self._plain = self._think is None

    def _call(self, call: dict[str, Any]) -> ToolCallDelta:
        function, index = read_object(call, "function"), call.get("index")
        arguments, name = function.get("arguments"), read_text(function, "name")
        extra = call.get("extra_content")
        if not isinstance(arguments, str):
            written = (
                write_json(arguments) if isinstance(arguments, (dict, list)) else b""
            )
            arguments = written.decode()
        return ToolCallDelta(
            index if isinstance(index, int) else None,
            read_text(call, "id"),
            self._tool_names.get(name, name),
            arguments,
            # Gemini's signature
            ProviderData(self._origin, {"extra_content": extra}) if extra else None,
        )


def _lines(data: bytes, error: Exception) -> list[Any]:
    """Decode an event of several documents: the blank lines between are missing."""
    lines = [line for line in data.split(b"\n") if line.strip()]
    try:
        found = [
            parse_json(line, keep_halves=True) for line in lines if line != b"[DONE]"
        ]
    except (ValueError, RecursionError):
        found = []
    if len(lines) < 2 or not found:
        raise UpstreamNotJson("a part of its answer is not JSON.") from error
    return found
