"""Gemini: decoding the answer, a stream of GenerateContentResponse or one of them.

Text, thought summaries and tool calls become events. Only candidate 0 counts. Data that
must be sent back to the model become provider data:

- `{"thoughtSignature", "chars"}`: the signature of that many characters of the text
  that follows; 0 if the signed part was empty.
- `{"thoughtSignature", "thought"}`: the signature of the thought in the same event. A
  thought without a signature has the data `{"thought"}`.
- `{"part"}`: a whole part that no event can express.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from byok.core.chat import Json, Origin, ProviderData
from byok.core.errors import RefusalKind, UpstreamGarbled
from byok.core.events import (
    Citation,
    FinishReason,
    Notice,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from byok.core.wire.json_body import SurrogateBuffer, write_json
from byok.core.wire.json_fields import objects_in, read_object, read_objects, read_text
from byok.dialects.answer_reader import EventReader, read_finish
from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import read_positive
from byok.dialects.presets import GEMINI

# Source: the enums FinishReason and BlockedReason of the Gemini API reference, and of
# google-genai 3.4.
FINISHED = ("STOP", "MAX_TOKENS")
NO_REASON = "FINISH_REASON_UNSPECIFIED"  # the default value of the enum

# Reasons of a filter, with a description for the sentence.
_FILTER_REASONS = {
    "SAFETY": "its safety filter",
    "RECITATION": "a protected text that it repeated",
    "LANGUAGE": "a language that it does not support",
    "BLOCKLIST": "a forbidden word",
    "PROHIBITED_CONTENT": "prohibited content",
    "SPII": "personal data",
    "IMAGE_SAFETY": "the safety filter for images",
    "IMAGE_PROHIBITED_CONTENT": "prohibited content in an image",
    "IMAGE_RECITATION": "a protected image that it repeated",
    "IMAGE_OTHER": "the filter for images",
    "MODEL_ARMOR": "Model Armor",
    "JAILBREAK": "its filter against jailbreaks",
}
# Reasons of unusable answers, with the failure.
_FAILURE_REASONS = {
    "MALFORMED_FUNCTION_CALL": "it wrote a tool call that cannot be read",
    "UNEXPECTED_TOOL_CALL": "it called a tool although none was offered",
    "TOO_MANY_TOOL_CALLS": "it called too many tools in a row",
    "MISSING_THOUGHT_SIGNATURE": "a thought signature is missing in the conversation",
    "MALFORMED_RESPONSE": "it wrote an answer that cannot be read",
}
# Failures that would occur again.
_NOT_RETRYABLE = frozenset({"MISSING_THOUGHT_SIGNATURE"})
_UNKNOWN_REASON = "The model stopped early and names no reason that is known ({})."
_FILTER_HINT = "Say it differently, or choose another model."
# Parts of tools on Google's side, which are sent back unchanged.
OPAQUE = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
_MEDIA = ("inlineData", "fileData")
_NO_MEDIA = "The model sent an image or a file, which cannot be shown here."
# Prefixes of `TokenCount` in usageMetadata.
_COUNTS = ("prompt", "toolUsePrompt", "candidates", "thoughts", "cachedContent")
# A step of a path in the arguments of a tool call: `.name`, `[0]`, `['name']`.
_STEP = re.compile(
    r"\.(?P<name>[^.\[\]]+)"
    r"|\[(?P<index>\d{1,6})\]"
    r"|\['(?P<single>(?:[^'\\]|\\.)*)'\]"
    r'|\["(?P<double>(?:[^"\\]|\\.)*)"\]'
)
_ESCAPED = re.compile(r"\\(.)")
_VALUE_FIELDS = ("stringValue", "numberValue", "boolValue", "nullValue")
_MAX_DEPTH = 64


def only_text(chunk: Any) -> str:
    """Return the text of a chunk with nothing else, as nearly all are, or ""."""
    try:
        (candidate,) = chunk["candidates"]
        (part,) = candidate["content"]["parts"]
        text = part["text"]
        has_more = (
            len(part) > 1
            or len(candidate) > 2
            or (len(candidate) > 1 and candidate["index"])
            or "error" in chunk
        )
    except (KeyError, TypeError, ValueError):
        return ""
    return "" if has_more or not isinstance(text, str) else text


def filter_sentence(reason: str, message: str = "", *, is_prompt: bool = False) -> str:
    """Return the notice for an answer that a filter ended; "" for other reasons.

    `message` is the upstream's explanation. `is_prompt`: the prompt was blocked.
    """
    cause = _FILTER_REASONS.get(reason, "its filter" if is_prompt else "")
    if not cause:
        return ""
    sentence = f"The model stopped because of {cause} ({reason})."
    if is_prompt:
        sentence = f"The model did not answer because of {cause} ({reason})."
    return f"{sentence} {message} {_FILTER_HINT}".replace("  ", " ")


def failure_of(reason: str, *, message: str = "") -> UpstreamGarbled | None:
    """Return the error for a reason of an unusable answer; None for other reasons."""
    failure = _FAILURE_REASONS.get(reason)
    if not failure:
        return None
    explanation = f": {message.rstrip('. ')}." if message else "."
    return UpstreamGarbled(
        f"{failure} ({reason}){explanation}",
        code="upstream_tool_failed",
        hint="Try again.",
        retryable=reason not in _NOT_RETRYABLE,
    )


def read_usage(usage: Any) -> Usage | None:
    """Decode usageMetadata; None if it has no counts.

    `promptTokenCount` includes the cached tokens, but not those that Google's tools
    read; `candidatesTokenCount` does not include the thoughts (API reference).
    """
    if not isinstance(usage, dict):
        return None
    prompt, tools, answer, thoughts, cached = (
        read_positive(usage.get(f"{name}TokenCount")) for name in _COUNTS
    )
    counts = Usage(
        prompt + tools,
        answer + thoughts,
        cached,
        reasoning_tokens=thoughts,
        cache_told=True,  # it leaves out a count of 0
    )
    return counts if counts.input_tokens or counts.output_tokens else None


def read_sources(candidate: Json, sources: dict[str, str]) -> None:
    """Add the pages that a candidate names to `sources`, their titles by URL."""
    # The pages of a search, of a file store or of a map.
    chunks = read_objects(candidate.get("groundingMetadata"), "groundingChunks")
    kinds = ("web", "retrievedContext", "maps")
    for page in (
        *(read_object(chunk, kind) for chunk in chunks for kind in kinds),
        *_citations(candidate),
        *read_objects(candidate.get("urlContextMetadata"), "urlMetadata"),
    ):
        url = page.get("uri") or page.get("retrievedUrl")
        title = page.get("title")
        if isinstance(url, str) and url:
            sources[url] = title if isinstance(title, str) else sources.get(url, "")


def _citations(candidate: Json) -> Iterator[Json]:
    metadata = candidate.get("citationMetadata")
    for name in ("citationSources", "citations"):  # Gemini API, Vertex AI
        yield from read_objects(metadata, name)


class PartialArguments:
    """The arguments of one tool call, joined from pieces in linear time.

    A piece is `{"jsonPath": "$.files[0].path", "stringValue": "a", "willContinue":
    true}` (Vertex AI API reference, PartialArg). The pieces of one string follow each
    other, and the items of an array come in their order.
    """

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self._path = ""  # of the string that may continue
        self._string: list[str] = []  # its pieces
        self._slot: tuple[Any, str | int] = (self._root, "")  # container, key or index

    def feed(self, pieces: Any) -> None:
        """Add the pieces of one event; other values are ignored.

        Raises:
            UpstreamGarbled: a path leads through a value that is no object or array.
        """
        for piece in objects_in(pieces):
            if isinstance(path := piece.get("jsonPath"), str):
                self._add(path, piece)

    def text(self, *, is_whole: bool = True) -> str:
        """Return the arguments as JSON, without the last bracket unless `is_whole`."""
        self._end_string()
        text = write_json(self._root).decode()
        return text if is_whole else text[:-1]

    def _add(self, path: str, piece: dict[str, Any]) -> None:
        kind = next((name for name in _VALUE_FIELDS if name in piece), "")
        value = piece.get(kind)
        if self._string and path == self._path and isinstance(value, str):
            self._string.append(value)
            return
        self._end_string()
        steps = [*_steps(path)]
        if not kind or not steps:
            return
        node: Any = self._root
        for step, next_step in pairwise(steps):
            node = _child(node, step, [] if isinstance(next_step, int) else {})
        _child(node, steps[-1], None)
        node[steps[-1]] = None if kind == "nullValue" else _number(value)
        if kind == "stringValue" and isinstance(value, str):
            self._path, self._string, self._slot = path, [value], (node, steps[-1])

    def _end_string(self) -> None:
        if self._string:
            node, step = self._slot
            node[step] = "".join(self._string)
            self._string = []


def _steps(path: str) -> Iterator[str | int]:
    """Split a path into keys and indexes.

    Raises:
        UpstreamGarbled: the path is invalid or too deep.
    """
    offset, depth = 1, 0
    while offset < len(path):
        step = _STEP.match(path, offset)
        depth += 1
        if step is None or path[0] != "$" or depth > _MAX_DEPTH:
            raise _invalid_path(path)
        offset = step.end()
        if step["index"] is not None:
            yield int(step["index"])
        else:
            yield _ESCAPED.sub(r"\1", next(filter(None, step.groups()), ""))


def _child(node: Any, step: str | int, empty: Any) -> Any:
    """Return the value at a step; a missing one becomes `empty`."""
    if isinstance(step, str) and isinstance(node, dict):
        return node.setdefault(step, empty)
    if isinstance(step, int) and isinstance(node, list) and step <= len(node):
        node += [empty] * (step == len(node))
        return node[step]
    raise _invalid_path(str(step))


def _number(value: Any) -> Any:
    """Return a whole number as an int: the API sends all as floating point."""
    is_whole = isinstance(value, float) and value == int(value)
    return int(value) if is_whole and abs(value) < 2**53 else value


def _invalid_path(path: str) -> UpstreamGarbled:
    return UpstreamGarbled(
        f"a piece of a tool call's arguments has no place: {path[:80]}.",
        retryable=True,
    )


class GeminiAnswer(EventReader):
    """A Stage[ServerSentEvent, StreamEvent] that decodes the answer of a chat."""

    dialect = GEMINI

    def __init__(self, tool_names: Mapping[str, str], origin: Origin) -> None:
        super().__init__(tool_names, origin)
        self._thinking = SurrogateBuffer()
        self._calls = 0
        self._partial: PartialArguments | None = None  # of the unfinished call
        self._usage: Any = None
        self._sources: dict[str, str] = {}
        self._notices: list[Notice] = []
        self._has_unknown_finish = False  # there is a notice about an unknown reason
        self._in_thought = False  # a thought was emitted, but not its data yet

    def _end_if_finished(self) -> None:
        # An unfinished call means that the answer broke off, even with STOP.
        if self._partial is None or self._finish is not FinishReason.STOP:
            super()._end_if_finished()

    def _flush_parts(self) -> None:
        """Emit half an emoji that is buffered, and an unfinished call."""
        self._end_thought()
        if text := self._text.flush():
            self._events.append(TextDelta(text))
        self._close_call(is_whole=False)

    def _end(self) -> None:
        self._flush_parts()
        self._events += (Citation(url, title) for url, title in self._sources.items())
        self._events += self._notices
        self._emit_end(read_usage(self._usage))

    def _read_document(self, chunk: dict[str, Any]) -> None:
        if self._has_begun and not self._in_thought and (text := only_text(chunk)):
            self._usage = chunk.get("usageMetadata") or self._usage
            if text := self._text.feed(text):  # nearly all chunks are just that
                self._events.append(TextDelta(text))
            return
        if chunk.get("error"):
            raise refusal_of(chunk)
        if usage := chunk.get("usageMetadata"):
            self._usage = usage
        feedback = chunk.get("promptFeedback")
        if reason := read_text(feedback, "blockReason"):
            message = read_text(feedback, "blockReasonMessage")
            sentence = filter_sentence(reason, message, is_prompt=True)
            self._notices.append(Notice(sentence, RefusalKind.CONTENT_FILTER.value))
            self._finish = FinishReason.CONTENT_FILTER
        for candidate in read_objects(chunk, "candidates"):
            if candidate.get("index"):
                continue
            for part in read_objects(candidate.get("content"), "parts"):
                self._read_part(part)
            if len(candidate) > 1:
                self._read_finish_reason(candidate)
                read_sources(candidate, self._sources)

    def _read_part(self, part: dict[str, Any]) -> None:
        text = part.get("text")
        # A signed text ends the thoughts before it with its own data.
        is_thought = part.get("thought") is True or (
            "text" in part and part.get("thoughtSignature")
        )
        if self._in_thought and not is_thought:
            self._end_thought()
        if len(part) == 1 and isinstance(text, str):  # as nearly all are
            if text := self._text.feed(text):
                self._has_begun = True
                self._events.append(TextDelta(text))
        elif isinstance(call := part.get("functionCall"), dict):
            self._read_call(call, part.get("thoughtSignature"))
        elif any(name in part for name in OPAQUE):
            self._emit_data({"part": part})
        elif any(name in part for name in _MEDIA):
            self._has_begun = True
            if (notice := Notice(_NO_MEDIA)) not in self._notices:
                self._notices.append(notice)
        else:
            self._read_text(text if isinstance(text, str) else "", part)

    def _read_text(self, text: str, part: dict[str, Any]) -> None:
        """Decode a text with its signature, or a thought."""
        signature = part.get("thoughtSignature")
        is_signed = isinstance(signature, str) and bool(signature)
        data = {"thoughtSignature": signature}
        if part.get("thought") is True:
            text = self._thinking.feed(text)
            if is_signed:
                self._emit_data(
                    {**data, "thought": True}, text + self._thinking.flush()
                )
            elif text:
                self._has_begun = self._in_thought = True
                self._events.append(ThinkingDelta(text))
            return
        text = self._text.feed(text)
        if is_signed:
            self._emit_data({**data, "chars": len(text)})
        if text:
            self._has_begun = True
            self._events.append(TextDelta(text))

    def _end_thought(self) -> None:
        """End an unsigned block of thoughts; its data only carries the origin."""
        text = self._thinking.flush()
        if self._in_thought or text:
            self._emit_data({"thought": True}, text)

    def _emit_data(self, data: Json, text: str = "") -> None:
        self._has_begun, self._in_thought = True, False
        self._events.append(ThinkingDelta(text, ProviderData(self._origin, data)))

    def _read_call(self, call: dict[str, Any], signature: Any) -> None:
        """Decode a whole call, the beginning of one, or its next pieces."""
        if not (name := read_text(call, "name")):
            if self._partial:
                self._partial.feed(call.get("partialArgs"))
                if call.get("willContinue") is not True:
                    self._close_call()
            return
        self._close_call(is_whole=False)
        self._has_begun = True
        self._calls += 1
        call_id = read_text(call, "id")
        data = {"thoughtSignature": signature, "id": call_id}
        data = {key: value for key, value in data.items() if value}
        args = call.get("args")
        delta = ToolCallDelta(
            self._calls,
            call_id,
            self._tool_names.get(name, name),
            provider_data=ProviderData(self._origin, data) if data else None,
        )
        self._events.append(delta)
        if call.get("willContinue") is True or "partialArgs" in call:
            self._partial = PartialArguments()
            self._partial.feed(call.get("partialArgs"))
            if call.get("willContinue") is not True:
                self._close_call()
        else:
            delta.arguments = write_json({} if args is None else args).decode()

    def _close_call(self, *, is_whole: bool = True) -> None:
        partial, self._partial = self._partial, None
        if partial:
            arguments = partial.text(is_whole=is_whole)
            self._events.append(ToolCallDelta(self._calls, arguments=arguments))

    def _read_finish_reason(self, candidate: Json) -> None:
        """Record a finish reason; with Google's own tools, there may be several."""
        reason = read_text(candidate, "finishReason")
        if reason in ("", NO_REASON):
            return
        message = read_text(candidate, "finishMessage")
        if error := failure_of(reason, message=message):
            raise error
        if sentence := filter_sentence(reason, message):
            self._finish = FinishReason.CONTENT_FILTER
            self._notices.append(Notice(sentence))
            return
        self._finish = read_finish(reason)
        if reason not in FINISHED and not self._has_unknown_finish:
            self._has_unknown_finish = True
            self._notices.append(Notice(_UNKNOWN_REASON.format(reason)))
