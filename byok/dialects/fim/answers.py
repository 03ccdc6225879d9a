"""FIM: decoding the answer.

llama.cpp's /infill sends `{"content", "stop"}`, all others send `choices[0].text`; both
streamed or as one document.
"""

from collections.abc import Iterable
from typing import Any

from byok.dialects.answer_reader import missing_end
from byok.dialects.error_bodies import refusal_of
from byok.dialects.openai_chat.fields import string
from byok.dialects.openai_chat.usage import read_usage
from byok.errors import UpstreamNotJson
from byok.events import Finish, FinishReason, StreamEvent, TextDelta
from byok.wire.json_body import parse_json
from byok.wire.sse import ServerSentEvent
from byok.wire.surrogates import SurrogateBuffer

_FINISH = {
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "limit": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
}


class FimAnswer:
    """Stage[ServerSentEvent, StreamEvent]: decodes the answer to a FIM request."""

    def __init__(self) -> None:
        self._text = SurrogateBuffer()
        self._finish: FinishReason | None = None
        self._usage: Any = None
        self._spoke = False
        self._done = False

    def feed(self, sse: ServerSentEvent, /) -> list[StreamEvent]:
        """Read one event."""
        data = sse.data.strip()
        if self._done or not data:
            return []
        if data == b"[DONE]":
            return self._finish_events()
        chunk = _parse(data)
        if sse.event == "error" or (isinstance(chunk, dict) and chunk.get("error")):
            raise refusal_of(chunk)
        if not isinstance(chunk, dict):
            raise UpstreamNotJson("a part of its answer is not a JSON object.")
        self._usage = chunk.get("usage") or self._usage
        said = self._text.feed(self._text_of(chunk))
        out: list[StreamEvent] = [TextDelta(said)] if said else []
        return [*out, *self._finish_events()] if chunk.get("stop") is True else out

    def flush(self) -> Iterable[StreamEvent]:
        """End the answer; without a finish reason it was cut off."""
        if self._done:
            return []
        if self._finish is None:
            raise missing_end(spoke=self._spoke)
        return self._finish_events()

    def _text_of(self, chunk: dict[str, Any]) -> str:
        """Return the text of a chunk, and note its finish reason."""
        self._spoke = True
        choices = chunk.get("choices")
        if isinstance(choices, list):
            choice: dict[str, Any] = next(filter(_is_first, choices), {})
            if reason := string(choice.get("finish_reason")):
                self._finish = _FINISH.get(reason, FinishReason.STOP)
            return string(choice.get("text"))
        if chunk.get("stop") is True:
            limited = chunk.get("stopped_limit") is True  # of older servers
            kind = "limit" if limited else string(chunk.get("stop_type"))
            self._finish = _FINISH.get(kind, FinishReason.STOP)
        return string(chunk.get("content"))

    def _finish_events(self) -> list[StreamEvent]:
        self._done = True
        rest, usage = self._text.flush(), read_usage(self._usage)
        out: list[StreamEvent] = [TextDelta(rest)] if rest else []
        if usage:
            out.append(usage)
        return [*out, Finish(self._finish or FinishReason.STOP)]


def _parse(data: bytes) -> Any:
    try:
        return parse_json(data, keep_halves=True)
    except (ValueError, RecursionError) as error:
        raise UpstreamNotJson("a part of its answer is not JSON.") from error


def _is_first(choice: Any) -> bool:
    return isinstance(choice, dict) and not choice.get("index")
