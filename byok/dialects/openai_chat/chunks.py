"""Parts of a chat.completion.chunk: text, errors, finish reason, usage, sources."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from byok.core.chat import Json
from byok.core.events import Citation, FinishReason, Usage
from byok.core.wire.json_fields import objects_in, read_text
from byok.dialects.answer_reader import read_finish
from byok.dialects.model_facts import read_positive

DETAILS = "reasoning_details"
# The last one is Copilot's.
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
# Of several finish reasons, the one with the highest weight counts.
_WEIGHT = {
    FinishReason.STOP: 0,
    FinishReason.TOOL_CALLS: 1,
    FinishReason.CONTENT_FILTER: 2,
    FinishReason.LENGTH: 3,
}
_DECODER = json.JSONDecoder()
_MAX_USAGE_CHARS = 2000
# Counts of tokens read from the cache: OpenAI and Moonshot, Mistral, DeepSeek, Claude
# behind a gateway.
_CACHE_READ = (
    "cached_tokens",
    "num_cached_tokens",
    "prompt_cache_hit_tokens",
    "cache_read_input_tokens",
)
# Counts of tokens written to it: OpenAI and OpenRouter, LiteLLM, Claude behind a
# gateway.
_CACHE_WRITTEN = (
    "cache_write_tokens",
    "cache_creation_tokens",
    "cache_creation_input_tokens",
)


class _Function(Struct, gc=False, forbid_unknown_fields=True):
    arguments: str
    name: Literal[""] | None = None


class _Fragment(Struct, gc=False, forbid_unknown_fields=True):
    index: int
    function: _Function
    id: Literal[""] | None = None
    type: str | None = None


class UsualDelta(Struct, gc=False, forbid_unknown_fields=True):
    """A delta of text, of reasoning, or of the arguments of calls."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Fragment] | None = None
    role: str | None = None
    refusal: None = None
    function_call: None = None


class _Choice(Struct, gc=False):
    delta: UsualDelta
    index: Literal[0] | None = None
    finish_reason: Literal[""] | None = None
    native_finish_reason: Literal[""] | None = None
    usage: None = None
    error: None = None


class _Chunk(Struct, gc=False):
    choices: tuple[_Choice]
    usage: None = None
    x_groq: None = None
    error: None = None
    base_resp: None = None
    search_results: None = None
    citations: None = None
    annotations: None = None


_decode = Decoder(_Chunk).decode


def usual_delta(data: bytes) -> UsualDelta | None:
    """Return the delta of a chunk with nothing else, None for any other chunk.

    Nine of ten chunks are of this kind. Decoding them so takes a third of the time of
    decoding and checking all fields.
    """
    try:
        return _decode(data).choices[0].delta
    except (DecodeError, ValueError, RecursionError):
        return None


def is_whole_message(message: Any, delta: Any) -> bool:
    """Tell whether a message is a whole answer.

    Perplexity sends a message with the text so far next to each delta.
    """
    if not isinstance(message, dict):
        return False
    if not isinstance(delta, dict):
        return True
    return _has_content(message) and not _has_content(delta)


def _has_content(part: dict[str, Any]) -> bool:
    return any(value for name, value in part.items() if name != "role")


def reasoning(part: dict[str, Any]) -> tuple[str, str]:
    """Return the reasoning and its field; several fields may repeat it."""
    for field in REASONING_FIELDS:
        value = part.get(field)
        if value and (text := value if isinstance(value, str) else texts(value)):
            return text, field
    return (texts(part[DETAILS]), DETAILS) if part.get(DETAILS) else ("", "")


def texts(value: Any) -> str:
    """Return a text, or the joined texts and summaries of a list of parts."""
    if isinstance(value, str):
        return value
    return "".join(
        read_text(item, "text") or read_text(item, "summary")
        for item in objects_in(value)
    )


def is_error(chunk: Json) -> bool:
    """Tell whether a chunk is an error, although it has no field `error`."""
    frame = chunk.get("base_resp")  # MiniMax has it in each answer
    if isinstance(frame, dict) and frame.get("status_code"):
        return True
    if chunk.get("choices") or chunk.get("usage"):
        return False
    if chunk.get("object") == "error" or chunk.get("detail") or chunk.get("errors"):
        return True
    words = (chunk.get("message"), chunk.get("msg"))
    return any(isinstance(word, str) and word for word in words)


def stricter_finish(
    known: FinishReason | None, reason: Any, *, only_length: bool = False
) -> FinishReason | None:
    """Return the finish reason that counts: the known one or a further one.

    With `only_length`, the further one counts only if it is a reached limit.

    Raises:
        UpstreamGarbled: the further reason is a failure of the upstream.
    """
    if not isinstance(reason, str) or not reason:
        return known
    further = read_finish(reason)
    if only_length and further is not FinishReason.LENGTH:
        return known
    if known is None or _WEIGHT[further] > _WEIGHT[known]:
        return further
    return known


def read_usage(usage: Any) -> Usage | None:
    """Decode a usage object; None if it has no counts.

    Prompt tokens include the cached part (OpenAI API reference, usage).
    """
    if not isinstance(usage, dict):
        return None
    prompt = read_positive(usage.get("prompt_tokens") or usage.get("input_tokens"))
    completion = read_positive(
        usage.get("completion_tokens") or usage.get("output_tokens")
    )
    if not prompt and not completion:
        return None
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    holders = (usage, details) if isinstance(details, dict) else (usage,)
    read = _highest_count(holders, _CACHE_READ)
    # xAI's completion tokens do not include those of reasoning.
    details = usage.get("completion_tokens_details")
    details = details or usage.get("output_tokens_details")
    answer_holders = (usage, details) if isinstance(details, dict) else (usage,)
    return Usage(
        prompt,
        completion,
        read or 0,
        _highest_count(holders, _CACHE_WRITTEN) or 0,
        _highest_count(answer_holders, ("reasoning_tokens",)) or 0,
        cache_told=read is not None,
    )


def _highest_count(holders: Iterable[Json], names: Iterable[str]) -> int | None:
    values = [holder.get(name) for holder in holders for name in names]
    counts = [read_positive(value) for value in values if value is not None]
    return max(counts, default=None)


def usage_near_end(answer: bytes) -> Usage | None:
    """Return the last usage object in the end of an answer's bytes, or None."""
    start = answer.rfind(b'"usage"')
    start = answer.find(b"{", start) if start >= 0 else -1
    if start < 0:
        return None
    try:
        text = answer[start : start + _MAX_USAGE_CHARS].decode(errors="replace")
        usage, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return read_usage(usage)


class SourceList:
    """The sources of one answer, each once; a title may come later than its URL."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}

    def add(self, holder: dict[str, Any]) -> None:
        """Add the sources that a chunk or a message names."""
        for name in ("search_results", "citations", "annotations"):
            items = holder.get(name)
            for item in items if isinstance(items, list) else ():
                self._add(item)

    def pop_all(self) -> Iterator[Citation]:
        """Return all sources, and forget them."""
        titles, self._titles = self._titles, {}
        for url, title in titles.items():
            yield Citation(url, title)

    def _add(self, item: Any) -> None:
        """Add a URL, or an object with one (nested in OpenAI's annotations)."""
        source = item.get("url_citation", item) if isinstance(item, dict) else item
        url, title = source, None
        if isinstance(source, dict):
            url, title = source.get("url"), source.get("title")
        if not isinstance(url, str) or "://" not in url:
            return
        known = self._titles.setdefault(url, "")
        if isinstance(title, str) and not known:
            self._titles[url] = title
