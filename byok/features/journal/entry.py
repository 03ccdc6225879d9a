"""One request as the journal stores it: facts of its record, within limits."""

from collections.abc import Iterable
from itertools import groupby
from typing import Annotated, NamedTuple, TypeAlias, TypeVar

from byok.core.events import Usage
from byok.core.record import RequestRecord
from byok.core.redact import MARK, Redactor
from byok.features.cost import PriceOf, cost_of

_MAX_TEXT_CHARS = 200
_MAX_TOOL_CHARS = 60
MOST = 10**12  # tokens, dollars or seconds; a sum of many still fits 64 bits
LATEST = 9e10  # seconds since 1970; calendars end in the year 9999
Moment: TypeAlias = Annotated[float, "seconds since 1970"]
_N = TypeVar("_N", int, float)


class JournalEntry(NamedTuple):
    """A finished request, in the order of the columns.

    `started` is in seconds since 1970, `seconds` and `first_byte` are the time to the
    end and to the model's first word. Tokens are those of all models that were asked
    for the answer; `input_tokens` includes those that were read from or written to the
    upstream's cache. `cost` is in US dollars. `tool_calls` are names of tools, such as
    `view x3, save-file`. `folder` is the name of the folder that the client has open,
    without its path. `retried` are the codes of failures after which an upstream was
    asked again, each once, separated by spaces. None stands for an unknown number.
    """

    request_id: str
    started: Moment
    seconds: float
    client: str
    conversation: str
    endpoint: str
    purpose: str
    model_asked: str
    model: str
    upstream: str
    attempts: int
    first_byte: float | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_written_tokens: int | None
    cost: float | None
    repairs: int
    dropped_calls: int
    notices: int
    prompt: str
    status: int
    outcome: str
    error: str
    error_class: str
    tool_calls: str
    loop: str
    prompt_change: str
    folder: str
    retried: str


def make_entry(record: RequestRecord, now: float, price_of: PriceOf) -> JournalEntry:
    """Return the entry of a request that ended `now`, in seconds since 1970."""
    seconds = record.seconds
    cost = cost_of(record, price_of)
    usage = record.total_usage
    return JournalEntry(
        record.request_id,
        max(0.0, min(now - seconds, LATEST)),
        seconds,
        cut_text(record.client),
        cut_text(record.conversation),
        cut_text(record.endpoint),
        cut_text(record.purpose),
        cut_text(record.model_asked),
        cut_text(record.model),
        cut_text(record.upstream),
        record.attempts,
        record.first_byte,
        *_counts(usage),
        None if cost is None else in_bounds(cost),
        record.repairs,
        record.dropped_calls,
        record.notices,
        cut_text(record.prompt),
        record.status,
        record.outcome.value,
        cut_text(record.error),
        cut_text(record.error_class),
        name_calls(record.tool_calls),
        cut_text(record.loop),
        cut_text(record.prompt_change),
        name_folder(record.folders),
        cut_text(" ".join(record.retried)),
    )


def name_folder(folders: Iterable[str]) -> str:
    """Return the last part of the first path that has one, of any operating system."""
    names = (folder.rstrip("/\\").replace("\\", "/") for folder in folders)
    return cut_text(next((name for n in names if (name := n.rpartition("/")[2])), ""))


def name_calls(names: Iterable[str]) -> str:
    """Return names in their order, within 200 characters.

    Repeated names are written once with their number: `view x3, save-file`. If there is
    no space for all, the number of missing calls is added: `view, save-file, +12`.
    """
    cut = [name[:_MAX_TOOL_CHARS] for name in names]
    text, remaining = "", len(cut)
    for name, run in groupby(cut):
        times = len([*run])
        part = f"{name} x{times}" if times > 1 else name
        longer = f"{text}, {part}" if text else part
        if len(longer) + len(f", +{remaining}") > _MAX_TEXT_CHARS:
            return f"{text}, +{remaining}"
        text, remaining = longer, remaining - times
    return text


def hide_secrets(text: str, redactor: Redactor) -> str:
    """Return a text of an entry without secrets, also if its limit has cut one."""
    text = text.encode("utf-8", "replace").decode()
    spans = redactor.find_spans(text) if len(text) == _MAX_TEXT_CHARS else []
    cut = min((begin for begin, end in spans if end == len(text)), default=None)
    return redactor(text) if cut is None else f"{redactor(text[:cut])}{MARK}"


def cut_text(text: str) -> str:
    """Cut a text to the limit of entries."""
    return text if len(text) <= _MAX_TEXT_CHARS else text[:_MAX_TEXT_CHARS]


def in_bounds(number: _N) -> _N:
    """Limit a number of a request, so that no sum overflows or becomes smaller."""
    return max(0, min(number, MOST))


def _counts(
    usage: Usage | None,
) -> tuple[int | None, int | None, int | None, int | None]:
    """Return the tokens in, out, read from the cache and written to it."""
    if usage is None:
        return None, None, None, None
    sent, received = in_bounds(usage.input_tokens), in_bounds(usage.output_tokens)
    if not usage.cache_told:
        return sent, received, None, None
    read = in_bounds(usage.cache_read_tokens)
    return sent, received, read, in_bounds(usage.cache_creation_tokens)
