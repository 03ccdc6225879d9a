"""Model facts: what is known about a model, and which source says so.

Facts are about one model, on any host; differences of a vendor's API are its `Quirks`.
Values of an upstream or a file are not trusted: an invalid one counts as unknown.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

# From the least to the most; `none` switches the reasoning off.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_RANK = {effort: rank for rank, effort in enumerate(EFFORTS)}
# Limits of plausible values.
_MAX_TOKENS = 2**31 - 1
LEAST_WINDOW, LEAST_OUTPUT = 512, 16
_MAX_TOOLS = 100_000
_MAX_DOLLARS = 100_000.0  # per million tokens
_MAX_NAME_CHARS = 64
_MAX_NUMBER, _MAX_NUMBER_CHARS = 1e15, 32


class Replay(StrEnum):
    """Which of a model's earlier reasoning is sent back to it.

    `TOOL_TURNS` are the assistant's turns with tool calls, `EVERY_TURN` all of its
    turns.
    """

    NEVER = "never"
    TOOL_TURNS = "tool_turns"
    EVERY_TURN = "every_turn"


class Price(Struct, frozen=True):
    """Prices in US dollars per million tokens; None where a price is unknown."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None

    @property
    def is_free(self) -> bool:
        """Whether no token costs anything."""
        return self.input == self.output == 0


FREE = Price(0.0, 0.0, 0.0, 0.0)


class ModelFacts(Struct, frozen=True):
    """What is known about one model; 0, "", () and None mean unknown.

    Attributes:
        id: the name at its upstream.
        window: the context window in tokens, including the answer.
        max_output: the longest answer in tokens.
        chats: it answers chats; others make embeddings, pictures or speech.
        tools: it accepts tools; `most_tools` is how many at most.
        images: it accepts pictures.
        thinking: it reasons.
        efforts: the values of effort that it accepts, the smallest first.
        sampling: it accepts temperature and top_p.
        adaptive_thinking: it decides by itself how much to reason (Anthropic).
        replay: which of its earlier reasoning must be sent back.
        empty_reasoning: if its earlier reasoning is lost, "" must be sent instead.
        dialect: the only dialect in which it accepts tools.
        printed_calls: tool calls that it prints as text are recognised, unless this
            is false.
        price: its prices.
        loaded_window: the part of the window with which a local server has loaded it,
            or is set up to load it.
        token_memory: the memory in bytes that a local server needs per token of the
            window.
        family: the name of its family, such as `qwen`, if prompts depend on it.
    """

    id: str
    window: int = 0
    max_output: int = 0
    chats: bool | None = None
    tools: bool | None = None
    most_tools: int = 0
    images: bool | None = None
    thinking: bool | None = None
    efforts: tuple[str, ...] = ()
    sampling: bool | None = None
    adaptive_thinking: bool | None = None
    replay: Replay | None = None
    empty_reasoning: bool | None = None
    dialect: str = ""
    printed_calls: bool | None = None
    price: Price | None = None
    loaded_window: int = 0
    token_memory: int = 0
    family: str = ""

    def known_fields(self) -> dict[str, Any]:
        """Return the fields that are known, without the id."""
        values = {name: getattr(self, name) for name in FIELDS}
        return {n: v for n, v in values.items() if v or v is False}


FIELDS = tuple(f for f in ModelFacts.__struct_fields__ if f != "id")
UNKNOWN_MODEL = ModelFacts("")


class FactSource(StrEnum):
    """The source of a fact; of several sources, the first in this order counts."""

    USER = "settings"
    PROBE = "probe"
    REFUSAL = "refusal"
    LOADED = "loaded model"
    SERVER = "server's list"
    FAMILY = "model family"
    TABLE = "table"
    LOCAL = "this machine"


_ORDER = {source: rank for rank, source in enumerate(FactSource)}


class SourcedFacts(Struct, frozen=True):
    """The facts about a model, and the sources of the known ones, by field."""

    facts: ModelFacts
    sources: Mapping[str, FactSource] = field(default_factory=dict)


def combine_facts(
    model: str, layers: Iterable[tuple[FactSource, ModelFacts]]
) -> SourcedFacts:
    """Combine the facts of several sources about a model, in the sources' order."""
    combined: dict[str, Any] = {}
    sources: dict[str, FactSource] = {}
    for source, facts in sorted(layers, key=lambda layer: _ORDER[layer[0]]):
        for name, value in facts.known_fields().items():
            if name not in combined:
                combined[name], sources[name] = value, source
    return SourcedFacts(ModelFacts(model, **combined), sources)


def read_number(value: Any) -> float | None:
    """Return a finite number of at least 0, which may be written as a string."""
    if isinstance(value, str):
        text = value.strip()
        if not text.isascii() or len(text) > _MAX_NUMBER_CHARS:
            return None
        try:
            value = float(text)
        except ValueError:
            return None
    fits = type(value) in (int, float) and 0 <= value <= _MAX_NUMBER
    return float(value) if fits else None


def read_count(value: Any, least: int = 1, most: int = _MAX_TOKENS) -> int:
    """Return a whole number between the limits, else 0."""
    number = read_number(value) if type(value) is not int else value
    if number is None or number != int(number) or not least <= number <= most:
        return 0
    return int(number)


def read_positive(value: Any) -> int:
    """Return a whole number above 0 of any size, else 0; strings do not count."""
    return int(value) if type(value) is int and value > 0 else 0


def read_window(value: Any) -> int:
    """Return a plausible context window in tokens, else 0."""
    return read_count(value, LEAST_WINDOW)


def read_output(value: Any) -> int:
    """Return a plausible maximum length of an answer in tokens, else 0."""
    return read_count(value, LEAST_OUTPUT)


def read_flag(value: Any) -> bool | None:
    """Return a boolean, else None."""
    return value if isinstance(value, bool) else None


def read_efforts(value: Any) -> tuple[str, ...]:
    """Return the known efforts in a list, the smallest first."""
    words = [v for v in value if isinstance(v, str)] if isinstance(value, list) else ()
    return tuple(effort for effort in EFFORTS if effort in words)


def read_dollars(value: Any) -> float | None:
    """Return a price in US dollars per million tokens, or None."""
    number = read_number(value)
    return None if number is None or number > _MAX_DOLLARS else round(number, 6)


def _read_price(value: Any) -> Price | None:
    if not isinstance(value, dict):
        return None
    names = ("input", "output", "cache_read", "cache_write")
    prices = {name: read_dollars(value.get(name)) for name in names}
    return Price(**prices) if any(p is not None for p in prices.values()) else None


def _read_name(value: Any) -> str:
    fits = isinstance(value, str) and value.isidentifier()
    return value if fits and len(value) <= _MAX_NAME_CHARS else ""


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "window": read_window,
    "max_output": read_output,
    "chats": read_flag,
    "tools": read_flag,
    "most_tools": lambda value: read_count(value, 1, _MAX_TOOLS),
    "images": read_flag,
    "thinking": read_flag,
    "efforts": read_efforts,
    "sampling": read_flag,
    "adaptive_thinking": read_flag,
    "replay": lambda value: next((r for r in Replay if r == value), None),
    "empty_reasoning": read_flag,
    "dialect": _read_name,
    "printed_calls": read_flag,
    "family": _read_name,
    "price": _read_price,
}


def read_facts(model: str, value: Any) -> ModelFacts:
    """Read what `write_facts` wrote; fields that are not valid count as unknown."""
    if not isinstance(value, dict):
        return ModelFacts(model)
    known = {name: read(value.get(name)) for name, read in _READERS.items()}
    known = {name: fact for name, fact in known.items() if fact or fact is False}
    return ModelFacts(model, **known)


def write_facts(facts: ModelFacts) -> dict[str, Any]:
    """Return the known facts as JSON, without the model's id.

    Facts that hold only while a server has the model loaded are left out.
    """
    known = {n: v for n, v in facts.known_fields().items() if n in _READERS}
    if facts.price is not None:
        prices = {name: getattr(facts.price, name) for name in Price.__struct_fields__}
        known["price"] = {n: p for n, p in prices.items() if p is not None}
    if facts.efforts:
        known["efforts"] = list(facts.efforts)
    return known


def nearest_effort(wanted: str, accepted: Iterable[str]) -> str:
    """Return the accepted effort that is nearest to the wanted one.

    Of two that are equally near, it is the lower one, which costs less. `none` is the
    nearest only to itself, unless nothing else is accepted. The result is "" if no
    effort is wanted or accepted.
    """
    known = [effort for effort in accepted if effort in _RANK]
    if wanted in known or wanted not in _RANK:
        return wanted if wanted in known else ""
    graded = [effort for effort in known if effort != "none"] or known
    rank = _RANK[wanted]
    return min(graded, key=lambda e: (abs(_RANK[e] - rank), _RANK[e]), default="")


def effort_for(
    wanted: str, facts: ModelFacts, usual: Iterable[str] = EFFORTS
) -> tuple[str, str]:
    """Return the effort to send, and a notice if one is wanted but cannot be sent.

    `usual` are the accepted efforts of a model whose facts do not name them.
    """
    accepted = () if facts.thinking is False else facts.efforts or usual
    effort = nearest_effort(wanted, accepted)
    is_lost = not effort and wanted not in ("", "none")
    return effort, unsent_effort(wanted) if is_lost else ""


def unsent_effort(wanted: str) -> str:
    """Return the notice for an effort that cannot be sent."""
    return f"This model has no setting for effort, so `{wanted}` was not sent."
