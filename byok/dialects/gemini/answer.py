"""Gemini: decoding the answer, a stream of GenerateContentResponse or one of them.

Text, thought summaries and tool calls become events. What the model wants back is kept
as provider data: `{"thoughtSignature", "chars"}` signs that many characters of the text
that follows (0 for an empty part of its own), `{"thoughtSignature", "thought"}` the
thought it comes with (one without a signature has the data `{"thought"}`), `{"part"}`
is a whole part that no event can express. Only candidate 0 counts.
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


def only_text(chunk: Any) -> str:
    """Return the text of a chunk that has nothing else, as nearly all have, or ""."""
    try:
        (candidate,) = chunk["candidates"]
        (part,) = candidate["content"]["parts"]
        text = part["text"]
        more = (
            len(part) > 1
            or len(candidate) > 2
            or (len(candidate) > 1 and candidate["index"])
            or "error" in chunk
        )
    except (KeyError, TypeError, ValueError):
        return ""
    return "" if more or not isinstance(text, str) else text


# Why Gemini ended an answer, as data: finish reasons and reasons of a blocked prompt.
#
# Source: the enums FinishReason and BlockedReason of the Gemini API reference, and of
# google-genai 3.4.


FINISHED = ("STOP", "MAX_TOKENS")
NO_REASON = "FINISH_REASON_UNSPECIFIED"  # the default value of the enum

# Reasons of a filter, with what it found.
_FILTERED = {
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
# Reasons of answers that are not usable, with what went wrong.
_FAILED = {
    "MALFORMED_FUNCTION_CALL": "it wrote a tool call that cannot be read",
    "UNEXPECTED_TOOL_CALL": "it called a tool although none was offered",
    "TOO_MANY_TOOL_CALLS": "it called too many tools in a row",
    "MISSING_THOUGHT_SIGNATURE": "a thought signature is missing in the conversation",
    "MALFORMED_RESPONSE": "it wrote an answer that cannot be read",
}
# The same question would fail again.
_NOT_REPEATED = frozenset({"MISSING_THOUGHT_SIGNATURE"})
_ELSE = "Say it differently, or choose another model."


def filter_sentence(reason: str, *, said: str = "") -> str:
    """Return the sentence for an answer that a filter ended; "" for other reasons.

    `said` are the upstream's own words.
    """
    what = _FILTERED.get(reason)
    if not what:
        return ""
    return f"The model stopped because of {what} ({reason}). {said} {_ELSE}".replace(
        "  ", " "
    )


def blocked_sentence(reason: str, *, said: str) -> str:
    """Return the sentence for a prompt that was not answered at all."""
    what = _FILTERED.get(reason, "its filter")
    words = f"The model did not answer because of {what} ({reason}). {said} {_ELSE}"
    return words.replace("  ", " ")


def unknown_sentence(reason: str) -> str:
    """Return the sentence for a reason that says nothing."""
    return f"The model stopped early and names no reason that is known ({reason})."


def failure_of(reason: str, *, said: str = "") -> UpstreamGarbled | None:
    """Return the error for a reason of a failed answer; None for other reasons."""
    what = _FAILED.get(reason)
    if not what:
        return None
    told = f"{what} ({reason})" + (f": {said.rstrip('. ')}." if said else ".")
    return UpstreamGarbled(
        told,
        code="upstream_tool_failed",
        hint="Try again.",
        retryable=reason not in _NOT_REPEATED,
    )


# What Gemini tells about an answer: token counts, and the pages it rests on.


_COUNTS = ("prompt", "toolUsePrompt", "candidates", "thoughts", "cachedContent")


def read_usage(usage: Any) -> Usage | None:
    """Decode usageMetadata; None where it has no counts.

    `promptTokenCount` includes the cached tokens, but not those that Google's tools
    read; `candidatesTokenCount` does not include the thoughts (API reference).
    """
    if not isinstance(usage, dict):
        return None
    prompt, tools, answer, thoughts, cached = (
        read_positive(usage.get(f"{name}TokenCount")) for name in _COUNTS
    )
    read = Usage(
        prompt + tools,
        answer + thoughts,
        cached,
        reasoning_tokens=thoughts,
        cache_told=True,  # it leaves out a count of 0
    )
    return read if read.input_tokens or read.output_tokens else None


def read_sources(candidate: Json, sources: dict[str, str]) -> None:
    """Add the pages that a candidate names to `sources`: titles by address."""
    for page in (
        *_grounding(candidate),
        *_citations(candidate),
        *read_objects(candidate.get("urlContextMetadata"), "urlMetadata"),
    ):
        url = page.get("uri") or page.get("retrievedUrl")
        title = page.get("title")
        if isinstance(url, str) and url:
            sources[url] = title if isinstance(title, str) else sources.get(url, "")


def _grounding(candidate: Json) -> Iterator[Json]:
    """Yield the pages of a search, of a file store or of a map."""
    for chunk in read_objects(candidate.get("groundingMetadata"), "groundingChunks"):
        for kind in ("web", "retrievedContext", "maps"):
            yield read_object(chunk, kind)


def _citations(candidate: Json) -> Iterator[Json]:
    metadata = candidate.get("citationMetadata")
    for name in ("citationSources", "citations"):  # of the Gemini API, of Vertex AI
        yield from read_objects(metadata, name)


# Arguments of a tool call that come in pieces, each at a path in the object.
#
# A piece is `{"jsonPath": "$.files[0].path", "stringValue": "a", "willContinue": true}`
# (Vertex AI API reference, PartialArg). Pieces of one string follow each other, and the
# items of an array come in their order.


_STEP = re.compile(
    r"\.(?P<name>[^.\[\]]+)"
    r"|\[(?P<index>\d{1,6})\]"
    r"|\['(?P<single>(?:[^'\\]|\\.)*)'\]"
    r'|\["(?P<double>(?:[^"\\]|\\.)*)"\]'
)
_ESCAPED = re.compile(r"\\(.)")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_DEEPEST = 64


class PartialArguments:
    """Joins the pieces of one call's arguments; the work is linear in their size."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self._path = ""  # of the string that may go on
        self._string: list[str] = []
        self._place: tuple[Any, str | int] = (self._root, "")

    def feed(self, pieces: Any) -> None:
        """Take the pieces of one event; anything that is no piece is ignored.

        Raises:
            UpstreamGarbled: a path leads through a value that is no object or array.
        """
        for piece in objects_in(pieces):
            if isinstance(path := piece.get("jsonPath"), str):
                self._take(path, piece)

    def text(self, *, is_whole: bool = True) -> str:
        """Return the JSON so far; that of a call that never ended is left open."""
        self._end_string()
        written = write_json(self._root).decode()
        return written if is_whole else written[:-1]

    def _take(self, path: str, piece: dict[str, Any]) -> None:
        kind = next((name for name in _VALUES if name in piece), "")
        value = piece.get(kind)
        if self._string and path == self._path and isinstance(value, str):
            self._string.append(value)
            return
        self._end_string()
        steps = [*_steps(path)]
        if not kind or not steps:
            return
        node: Any = self._root
        for step, after in pairwise(steps):
            node = _child(node, step, [] if isinstance(after, int) else {})
        _child(node, steps[-1], None)
        node[steps[-1]] = None if kind == "nullValue" else _number(value)
        if kind == "stringValue" and isinstance(value, str):
            self._path, self._string, self._place = path, [value], (node, steps[-1])

    def _end_string(self) -> None:
        if self._string:
            node, step = self._place
            node[step] = "".join(self._string)
            self._string = []


def _steps(path: str) -> Iterator[str | int]:
    """Split a path into keys and indexes.

    Raises:
        UpstreamGarbled: it is no such path, or too deep.
    """
    at, count = 1, 0
    while at < len(path):
        found = _STEP.match(path, at)
        count += 1
        if found is None or path[0] != "$" or count > _DEEPEST:
            raise _no_place(path)
        at = found.end()
        if found["index"] is not None:
            yield int(found["index"])
        else:
            yield _ESCAPED.sub(r"\1", next(filter(None, found.groups()), ""))


def _child(node: Any, step: str | int, empty: Any) -> Any:
    """Return what is at a step, which is `empty` where nothing is yet."""
    if isinstance(step, str) and isinstance(node, dict):
        return node.setdefault(step, empty)
    if isinstance(step, int) and isinstance(node, list) and step <= len(node):
        node += [empty] * (step == len(node))
        return node[step]
    raise _no_place(str(step))


def _number(value: Any) -> Any:
    """Return a whole number as such: all of them come as floating point."""
    is_whole = isinstance(value, float) and value == int(value)
    return int(value) if is_whole and abs(value) < 2**53 else value


def _no_place(path: str) -> UpstreamGarbled:
    return UpstreamGarbled(
        f"a piece of a tool call's arguments has no place: {path[:80]}.",
        retryable=True,
    )


# Parts that belong to tools on Google's side; they come back as they were.
OPAQUE = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
_MEDIA = ("inlineData", "fileData")
_NO_MEDIA = "The model sent an image or a file, which cannot be shown here."


class GeminiAnswer(EventReader):
    """Stage[ServerSentEvent, StreamEvent]: decodes the answer of a chat."""

    dialect = GEMINI

    def __init__(self, tool_names: Mapping[str, str], origin: Origin) -> None:
        super().__init__(tool_names, origin)
        self._thinking = SurrogateBuffer()
        self._calls = 0
        self._partial: PartialArguments | None = None  # of the call that is not whole
        self._finish: FinishReason | None = None
        self._usage: Any = None
        self._sources: dict[str, str] = {}
        self._notices: list[Notice] = []
        self._has_odd_end = False  # a reason that is not known was told
        self._in_thought = False  # a thought was given, and no data after it

    def _end_if_finished(self) -> None:
        # With a call that never ended, the answer broke off, whatever it says.
        is_half = self._partial is not None and self._finish is FinishReason.STOP
        if self._finish is not None and not is_half:
            self._end()

    def _rest(self) -> None:
        """Give half an emoji that was held back, and a call that never ended."""
        self._end_thought()
        if rest := self._text.flush():
            self._out.append(TextDelta(rest))
        self._close_call(is_whole=False)

    def _end(self) -> None:
        self._rest()
        self._out += (Citation(url, title) for url, title in self._sources.items())
        self._out += self._notices
        self._give_end(self._finish or FinishReason.STOP, read_usage(self._usage))

    def _read_document(self, chunk: dict[str, Any]) -> None:
        if self._spoke and not self._in_thought and (text := only_text(chunk)):
            self._usage = chunk.get("usageMetadata") or self._usage
            if text := self._text.feed(text):  # nearly all chunks are just that
                self._out.append(TextDelta(text))
            return
        if chunk.get("error"):
            raise refusal_of(chunk)
        if usage := chunk.get("usageMetadata"):
            self._usage = usage
        if "promptFeedback" in chunk:
            self._note_blocked(chunk["promptFeedback"])
        for candidate in read_objects(chunk, "candidates"):
            if not candidate.get("index"):
                self._candidate(candidate)

    def _candidate(self, candidate: dict[str, Any]) -> None:
        for part in read_objects(candidate.get("content"), "parts"):
            self._part(part)
        if len(candidate) > 1:
            if reason := read_text(candidate, "finishReason"):
                self._note_finish(reason, read_text(candidate, "finishMessage"))
            read_sources(candidate, self._sources)

    def _part(self, part: dict[str, Any]) -> None:
        text = part.get("text")
        if self._in_thought and not _continues_thought(part):
            self._end_thought()
        if len(part) == 1 and isinstance(text, str):  # as nearly all are
            if text := self._text.feed(text):
                self._spoke = True
                self._out.append(TextDelta(text))
        elif isinstance(call := part.get("functionCall"), dict):
            self._call(call, part.get("thoughtSignature"))
        elif any(name in part for name in OPAQUE):
            self._keep({"part": part})
        elif any(name in part for name in _MEDIA):
            self._spoke = True
            if (notice := Notice(_NO_MEDIA)) not in self._notices:
                self._notices.append(notice)
        else:
            self._say(text if isinstance(text, str) else "", part)

    def _say(self, text: str, part: dict[str, Any]) -> None:
        """Decode a text with its signature, or a thought."""
        signature = part.get("thoughtSignature")
        signed = isinstance(signature, str) and bool(signature)
        data = {"thoughtSignature": signature}
        if part.get("thought") is True:
            text = self._thinking.feed(text)
            if signed:
                self._keep({**data, "thought": True}, text + self._thinking.flush())
            elif text:
                self._spoke = self._in_thought = True
                self._out.append(ThinkingDelta(text))
            return
        text = self._text.feed(text)
        if signed:
            self._keep({**data, "chars": len(text)})
        if text:
            self._spoke = True
            self._out.append(TextDelta(text))

    def _end_thought(self) -> None:
        """End a block of thoughts; its data says only whose they are."""
        rest = self._thinking.flush()
        if self._in_thought or rest:
            self._keep({"thought": True}, rest)

    def _keep(self, data: Json, text: str = "") -> None:
        self._spoke, self._in_thought = True, False
        self._out.append(ThinkingDelta(text, ProviderData(self._origin, data)))

    def _call(self, call: dict[str, Any], signature: Any) -> None:
        """Decode a call: whole, or the next pieces of one."""
        if not (name := read_text(call, "name")):
            if self._partial:
                self._partial.feed(call.get("partialArgs"))
                if call.get("willContinue") is not True:
                    self._close_call()
            return
        self._close_call(is_whole=False)
        self._spoke = True
        self._calls += 1
        id_ = read_text(call, "id")
        data = {"thoughtSignature": signature, "id": id_}
        data = {key: value for key, value in data.items() if value}
        args = call.get("args")
        delta = ToolCallDelta(
            self._calls,
            id_,
            self._tool_names.get(name, name),
            provider_data=ProviderData(self._origin, data) if data else None,
        )
        self._out.append(delta)
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
            self._out.append(ToolCallDelta(self._calls, arguments=arguments))

    def _note_finish(self, reason: str, said: str) -> None:
        """Note the reason; an answer with tools of Google's may have several."""
        if reason == NO_REASON:
            return
        if error := failure_of(reason, said=said):
            raise error
        if sentence := filter_sentence(reason, said=said):
            self._finish = FinishReason.CONTENT_FILTER
            self._notices.append(Notice(sentence))
            return
        self._finish = read_finish(reason)
        if reason not in FINISHED and not self._has_odd_end:
            self._has_odd_end = True
            self._notices.append(Notice(unknown_sentence(reason)))

    def _note_blocked(self, feedback: Any) -> None:
        if reason := read_text(feedback, "blockReason"):
            said = read_text(feedback, "blockReasonMessage")
            words = blocked_sentence(reason, said=said)
            self._notices.append(Notice(words, RefusalKind.CONTENT_FILTER.value))
            self._finish = FinishReason.CONTENT_FILTER


def _continues_thought(part: Json) -> bool:
    """Tell whether a part belongs to the thoughts before it, or ends them itself."""
    is_signed_text = "text" in part and bool(part.get("thoughtSignature"))
    return part.get("thought") is True or is_signed_text
