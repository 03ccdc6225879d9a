"""Gemini: decoding the answer, a stream of GenerateContentResponse or one of them.

Text, thought summaries and tool calls become events. What the model wants back is kept
as provider data: `{"thoughtSignature", "chars"}` signs that many characters of the text
that follows (0 for an empty part of its own), `{"thoughtSignature", "thought"}` the
thought it comes with (one without a signature has the data `{"thought"}`), `{"part"}`
is a whole part that no event can express. Only candidate 0 counts.
"""

from collections.abc import Mapping
from typing import Any

from byok.chat import NO_ORIGIN, Json, Origin, ProviderData
from byok.dialects.answer_reader import AnswerReader
from byok.dialects.error_bodies import refusal_of
from byok.dialects.gemini.chunks import (
    check_protocol,
    only_text,
    read_error_body,
    read_lines,
)
from byok.dialects.gemini.finish_reasons import (
    FINISHED,
    NO_REASON,
    blocked_sentence,
    failure_of,
    filter_sentence,
    unknown_sentence,
)
from byok.dialects.gemini.metadata import read_sources, read_usage
from byok.dialects.gemini.partial_args import PartialArguments
from byok.errors import (
    RefusalKind,
    UpstreamNotJson,
)
from byok.events import (
    Citation,
    Finish,
    FinishReason,
    Notice,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from byok.wire.json_body import parse_json, write_json
from byok.wire.sse import ServerSentEvent
from byok.wire.surrogates import SurrogateBuffer

# Parts that belong to tools on Google's side; they come back as they were.
OPAQUE = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
_MEDIA = ("inlineData", "fileData")
_NO_MEDIA = "The model sent an image or a file, which cannot be shown here."


class GeminiAnswer(AnswerReader[ServerSentEvent]):
    """Stage[ServerSentEvent, StreamEvent]: decodes the answer of a chat."""

    def __init__(
        self, tool_names: Mapping[str, str], origin: Origin = NO_ORIGIN
    ) -> None:
        super().__init__()
        self._tool_names = tool_names
        self._origin = origin
        self._text = SurrogateBuffer()
        self._thinking = SurrogateBuffer()
        self._calls = 0
        self._partial: PartialArguments | None = None  # of the call that is not whole
        self._finish: FinishReason | None = None
        self._usage: Any = None
        self._sources: dict[str, str] = {}
        self._notices: list[Notice] = []
        self._has_odd_end = False  # a reason that is not known was told
        self._began = False  # a chunk was read
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
        self._done = True
        self._out += (Citation(url, title) for url, title in self._sources.items())
        self._out += self._notices
        if usage := read_usage(self._usage):
            self._out.append(usage)
        self._out.append(Finish(self._finish or FinishReason.STOP))

    def _read(self, sse: ServerSentEvent) -> None:
        if sse.event == "error":
            raise refusal_of(read_error_body(sse.data))
        try:
            chunk = parse_json(sse.data, keep_halves=True)
        except (ValueError, RecursionError) as error:
            for chunk in read_lines(sse.data, error):
                self._chunk(chunk)
            return
        if self._spoke and not self._in_thought and (text := only_text(chunk)):
            self._usage = chunk.get("usageMetadata") or self._usage
            if text := self._text.feed(text):  # nearly all chunks are just that
                self._out.append(TextDelta(text))
            return
        for one in chunk if isinstance(chunk, list) else (chunk,):
            self._chunk(one)

    def _chunk(self, chunk: Any) -> None:
        if not isinstance(chunk, dict):
            raise UpstreamNotJson("a part of its answer is not a JSON object.")
        if chunk.get("error"):
            raise refusal_of(chunk)
        if not self._began:
            check_protocol(chunk)
            self._began = True
        if usage := chunk.get("usageMetadata"):
            self._usage = usage
        if "promptFeedback" in chunk:
            self._note_blocked(chunk["promptFeedback"])
        candidates = chunk.get("candidates")
        for candidate in candidates if isinstance(candidates, list) else ():
            if isinstance(candidate, dict) and not candidate.get("index"):
                self._candidate(candidate)

    def _candidate(self, candidate: dict[str, Any]) -> None:
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                self._part(part)
        if len(candidate) > 1:
            if isinstance(reason := candidate.get("finishReason"), str) and reason:
                self._note_finish(reason, candidate.get("finishMessage"))
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
        name = call.get("name")
        if not isinstance(name, str) or not name:
            if self._partial:
                self._partial.feed(call.get("partialArgs"))
                if call.get("willContinue") is not True:
                    self._close_call()
            return
        self._close_call(is_whole=False)
        self._spoke = True
        self._calls += 1
        id_ = call.get("id") if isinstance(call.get("id"), str) else ""
        data = {"thoughtSignature": signature, "id": id_}
        data = {key: value for key, value in data.items() if value}
        args = call.get("args")
        delta = ToolCallDelta(
            self._calls,
            id_ or "",
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

    def _note_finish(self, reason: str, message: Any) -> None:
        """Note the reason; an answer with tools of Google's may have several."""
        said = message if isinstance(message, str) else ""
        if reason == NO_REASON:
            return
        if error := failure_of(reason, said=said):
            raise error
        if sentence := filter_sentence(reason, said=said):
            self._finish = FinishReason.CONTENT_FILTER
            self._notices.append(Notice(sentence))
            return
        self._finish = FINISHED.get(reason, FinishReason.STOP)
        if reason not in FINISHED and not self._has_odd_end:
            self._has_odd_end = True
            self._notices.append(Notice(unknown_sentence(reason)))

    def _note_blocked(self, feedback: Any) -> None:
        reason = feedback.get("blockReason") if isinstance(feedback, dict) else None
        if isinstance(reason, str) and reason:
            said = feedback.get("blockReasonMessage")
            words = blocked_sentence(reason, said=said if isinstance(said, str) else "")
            self._notices.append(Notice(words, RefusalKind.CONTENT_FILTER.value))
            self._finish = FinishReason.CONTENT_FILTER


def _continues_thought(part: Json) -> bool:
    """Tell whether a part belongs to the thoughts before it, or ends them itself."""
    is_signed_text = "text" in part and bool(part.get("thoughtSignature"))
    return part.get("thought") is True or is_signed_text
