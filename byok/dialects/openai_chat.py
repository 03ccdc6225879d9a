"""OpenAI Chat Completions, and everything that imitates it: reading the answer.

One reader serves streamed chunks and whole answers. Only choice 0 counts. The facts
behind each branch were seen in recorded answers of real providers.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from byok.chat import ChatRequest
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.openai_errors import refusal_of
from byok.dialects.openai_request import encode_request
from byok.dialects.openai_usage import read_usage
from byok.dialects.quirks import Quirks
from byok.dialects.think_tags import ThinkTags
from byok.errors import UpstreamGarbled
from byok.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from byok.stage import Stage, chain
from byok.wire.json_body import parse_json
from byok.wire.sse import ServerSentEvent
from byok.wire.surrogates import SurrogateBuffer

_FINISH = {
    "stop": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "max_output_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
    "sensitive": FinishReason.CONTENT_FILTER,
}
# When several are told, the one that forbids most wins.
_WEIGHT = {
    FinishReason.STOP: 0,
    FinishReason.TOOL_CALLS: 1,
    FinishReason.CONTENT_FILTER: 2,
    FinishReason.LENGTH: 3,
}
_FAILED = frozenset({"error", "insufficient_system_resource"})


class OpenAIChat:
    """Dialect."""

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Write a chat/completions request."""
        return encode_request(chat, target)

    def auth(self, key: str, quirks: Quirks) -> Mapping[str, str]:
        """Carry the key as a bearer token, or bare in the vendor's own header."""
        header = quirks.auth_header
        return {header: f"Bearer {key}" if header == "Authorization" else key}

    def decoder(
        self, tool_names: Mapping[str, str]
    ) -> Stage[ServerSentEvent, StreamEvent]:
        """Read chat.completion.chunk events, or one chat.completion."""
        return chain(_Decoder(tool_names), ThinkTags())

    def models(self, body: Any) -> list[str]:
        """Read `GET models`: `{"data": [{"id"}]}`, or the bare array some send."""
        rows = body.get("data") if isinstance(body, dict) else body
        ids = (
            [row.get("id") for row in rows or () if isinstance(row, dict)]
            if isinstance(rows, list)
            else []
        )
        return [i for i in ids if isinstance(i, str) and i]


class _Decoder:
    def __init__(self, tool_names: Mapping[str, str]) -> None:
        self._tool_names = tool_names
        self._text = SurrogateBuffer()
        self._thinking = SurrogateBuffer()
        self._finish: FinishReason | None = None
        self._usage: Any = None
        self._spoke = False  # something of an answer has come
        self._done = False

    def feed(self, sse: ServerSentEvent, /) -> Iterator[StreamEvent]:
        data = sse.data.strip()
        if self._done or not data:
            return
        if data == b"[DONE]":
            yield from self._end()
            return
        for chunk in _documents(data):
            if sse.event == "error" or chunk.get("error"):
                raise refusal_of(chunk)
            yield from self._chunk(chunk)

    def flush(self) -> Iterator[StreamEvent]:
        if self._done:
            return
        if self._finish is None:
            yield from self._rest()
            raise UpstreamGarbled(
                "its answer broke off before the end."
                if self._spoke
                else "its answer was empty.",
                code="upstream_cut" if self._spoke else "upstream_empty",
                retryable=True,
            )
        yield from self._end()

    def _end(self) -> Iterator[StreamEvent]:
        if self._finish is None and not self._spoke:
            raise UpstreamGarbled(
                "its answer was empty.", code="upstream_empty", retryable=True
            )
        self._done = True
        yield from self._rest()
        if usage := read_usage(self._usage):
            yield usage
        yield Finish(self._finish or FinishReason.STOP)

    def _rest(self) -> Iterator[StreamEvent]:
        if rest := self._thinking.flush():
            yield ThinkingDelta(rest)
        if rest := self._text.flush():
            yield TextDelta(rest)

    def _chunk(self, chunk: dict[str, Any]) -> Iterator[StreamEvent]:
        self._note_usage(chunk)
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and not choice.get("index"):
                yield from self._choice(choice)

    def _choice(self, choice: dict[str, Any]) -> Iterator[StreamEvent]:
        part = choice.get("delta")
        if not isinstance(part, dict):
            # Some repeat the whole message at the end of a stream: read it only once.
            part = choice.get("message") if not self._spoke else None
        if isinstance(part, dict):
            yield from self._part(part)
        self._note_finish(choice.get("finish_reason"))
        self._note_finish(choice.get("native_finish_reason"), only_length=True)

    def _part(self, part: dict[str, Any]) -> Iterator[StreamEvent]:
        self._spoke = True
        if thought := self._thinking.feed(_reasoning(part)):
            yield ThinkingDelta(thought)
        content = part.get("content")
        if isinstance(content, str):
            if content := self._text.feed(content):
                yield TextDelta(content)
        elif isinstance(content, list):
            yield from self._content_parts(content)
        refusal = part.get("refusal")
        if isinstance(refusal, str) and refusal:
            yield TextDelta(self._text.feed(refusal))
        if calls := part.get("tool_calls"):
            yield from self._calls(calls)
        if isinstance(call := part.get("function_call"), dict):
            yield self._call({"index": 0, "function": call})

    def _content_parts(self, parts: list[Any]) -> Iterator[StreamEvent]:
        """Read list content, as Mistral's reasoning models send it."""
        for part in parts:
            if not isinstance(part, dict):
                continue
            if isinstance(text := part.get("text"), str):
                yield TextDelta(self._text.feed(text))
            elif (thought := part.get("thinking")) is not None:
                yield ThinkingDelta(self._thinking.feed(_texts(thought)))

    def _calls(self, calls: Any) -> Iterator[StreamEvent]:
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                yield self._call(call)

    def _call(self, call: dict[str, Any]) -> ToolCallDelta:
        raw = call.get("function")
        function: dict[str, Any] = raw if isinstance(raw, dict) else {}
        index, name = call.get("index"), _string(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, (dict, list)):
            arguments = orjson.dumps(arguments).decode()
        return ToolCallDelta(
            index if isinstance(index, int) else None,
            _string(call.get("id")),
            self._tool_names.get(name, name),
            _string(arguments),
        )

    def _note_finish(self, reason: Any, *, only_length: bool = False) -> None:
        if not isinstance(reason, str) or not reason:
            return
        if reason in _FAILED:
            raise UpstreamGarbled(
                "it stopped with an error in the middle of its answer.",
                code="upstream_cut",
                retryable=True,
            )
        found = _FINISH.get(reason.lower(), FinishReason.STOP)
        if only_length and found is not FinishReason.LENGTH:
            return
        if self._finish is None or _WEIGHT[found] > _WEIGHT[self._finish]:
            self._finish = found

    def _note_usage(self, chunk: dict[str, Any]) -> None:
        """Keep the last usage; it comes at the top, in x_groq, or in a choice."""
        groq = chunk.get("x_groq")
        usage = chunk.get("usage") or (
            groq.get("usage") if isinstance(groq, dict) else None
        )
        for choice in chunk.get("choices") or ():
            usage = usage or (choice.get("usage") if _is_dict(choice) else None)
        self._usage = usage or self._usage


def _documents(data: bytes) -> Iterator[dict[str, Any]]:
    """Read one event; without blank lines between events, one document a line."""
    try:
        found = [parse_json(data, keep_halves=True)]
    except (ValueError, RecursionError) as error:
        lines = [line for line in data.split(b"\n") if line.strip()]
        try:
            found = [
                parse_json(line, keep_halves=True)
                for line in lines
                if line != b"[DONE]"
            ]
        except (ValueError, RecursionError):
            found = []
        if len(lines) < 2 or not found:
            raise UpstreamGarbled(
                "a part of its answer is not JSON.", code="upstream_not_json"
            ) from error
    for document in found:
        if not isinstance(document, dict):
            raise UpstreamGarbled(
                "a part of its answer is no JSON object.", code="upstream_not_json"
            )
        yield document


def _reasoning(part: dict[str, Any]) -> str:
    """Read the reasoning once, whichever fields repeat it."""
    for field in ("reasoning_content", "reasoning"):
        if isinstance(text := part.get(field), str) and text:
            return text
    details = part.get("reasoning_details")
    return _texts(details) if isinstance(details, list) else ""


def _texts(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    found = [
        _string(item.get("text") or item.get("summary"))
        for item in value
        if isinstance(item, dict)
    ]
    return "".join(found)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)
