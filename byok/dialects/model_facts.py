"""Model facts: what is known about a model, and which source says so.

`Quirks` of a dialect hold how a vendor's API speaks. Facts hold what one model takes,
on whatever host it runs.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Struct, field

# From the least to the most; `none` switches the reasoning off.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_RANK = {effort: rank for rank, effort in enumerate(EFFORTS)}


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
        window: the context window in tokens, with the answer.
        max_output: the longest answer in tokens.
        chats: it answers chats; others make embeddings, pictures or speech.
        tools: it accepts tools; `most_tools` is how many at most.
        images: it accepts pictures.
        thinking: it reasons.
        efforts: the values of effort that it accepts, the smallest first.
        sampling: it accepts temperature and top_p.
        adaptive_thinking: it decides by itself how much to reason (Anthropic).
        replay: which of its earlier reasoning must be sent back.
        empty_reasoning: where that is unknown, an empty one must be sent.
        dialect: the only dialect in which it can be asked with tools.
        printed_calls: tool calls that are printed as text are read; unless it is
            false, they are.
        price: its prices.
        loaded_window: the part of the window with which a local server has loaded it,
            or is set up to load it.
        token_memory: the memory in bytes that a local server needs per token of the
            window.
        family: whose model it is, such as `qwen`, where prompts differ by that.
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
    """Who says so; of two sources that know a fact the first in this order counts."""

    USER = "settings"
    PROBE = "probe"
    REFUSAL = "refusal"
    LOADED = "loaded model"
    SERVER = "server's list"
    FAMILY = "model family"
    TABLE = "table"
    LOCAL = "this machine"


class SourcedFacts(Struct, frozen=True):
    """The facts about a model, and the source of each that is known, by field."""

    facts: ModelFacts
    sources: Mapping[str, FactSource] = field(default_factory=dict)


def combine_facts(
    model: str, layers: Iterable[tuple[FactSource, ModelFacts]]
) -> SourcedFacts:
    """Combine what several sources know about a model; the first one counts."""
    known: dict[str, Any] = {}
    sources: dict[str, FactSource] = {}
    for source, facts in sorted(layers, key=lambda layer: _ORDER[layer[0]]):
        for name, value in facts.known_fields().items():
            if name not in known:
                known[name], sources[name] = value, source
    return SourcedFacts(ModelFacts(model, **known), sources)


_ORDER = {source: place for place, source in enumerate(FactSource)}


# Values of model facts, as lists of models and files have them: checked and read.
#
# Nothing of an upstream or a file is trusted: what is not valid counts as unknown.


_MOST_TOKENS = 2**31
LEAST_WINDOW, LEAST_OUTPUT = 512, 16
_MOST_TOOLS = 100_000
_MOST_DOLLARS = 100_000.0  # per million tokens
_LONGEST_NAME = 64  # characters
_LARGEST, _LONGEST = 1e15, 32  # of numbers; characters of one that is a string

_Reader: TypeAlias = Callable[[Any], Any]


def read_number(value: Any) -> float | None:
    """Return a finite number of at least 0, which may be written as a string."""
    if isinstance(value, str):
        text = value.strip()
        if not text.isascii() or len(text) > _LONGEST:
            return None
        try:
            value = float(text)
        except ValueError:
            return None
    fits = type(value) in (int, float) and 0 <= value <= _LARGEST
    return float(value) if fits else None


def read_count(value: Any, least: int = 1, most: int = _MOST_TOKENS - 1) -> int:
    """Return a whole number between the limits, else 0."""
    number = read_number(value) if type(value) is not int else value
    if number is None or number != int(number) or not least <= number <= most:
        return 0
    return int(number)


def read_positive(value: Any) -> int:
    """Return a whole number above 0 of any size, else 0; a text is none."""
    return int(value) if type(value) is int and value > 0 else 0


def read_window(value: Any) -> int:
    """Return a context window in tokens, 0 if it is none."""
    return read_count(value, LEAST_WINDOW)


def read_output(value: Any) -> int:
    """Return the length of an answer in tokens, 0 if it is none."""
    return read_count(value, LEAST_OUTPUT)


def read_flag(value: Any) -> bool | None:
    """Return a boolean, else None."""
    return value if isinstance(value, bool) else None


def read_efforts(value: Any) -> tuple[str, ...]:
    """Return the efforts of a list that are known ones, the smallest first."""
    given = [v for v in value if isinstance(v, str)] if isinstance(value, list) else ()
    return tuple(effort for effort in EFFORTS if effort in given)


def read_dollars(value: Any) -> float | None:
    """Return a price in US dollars per million tokens, or None."""
    number = read_number(value)
    return None if number is None or number > _MOST_DOLLARS else round(number, 6)


def _read_price(value: Any) -> Price | None:
    if not isinstance(value, dict):
        return None
    names = ("input", "output", "cache_read", "cache_write")
    found = {name: read_dollars(value.get(name)) for name in names}
    return Price(**found) if any(v is not None for v in found.values()) else None


def _read_replay(value: Any) -> Replay | None:
    return next((replay for replay in Replay if replay == value), None)


def _read_name(value: Any) -> str:
    fits = isinstance(value, str) and value.isidentifier()
    return value if fits and len(value) <= _LONGEST_NAME else ""


_READERS: Mapping[str, _Reader] = {
    "window": read_window,
    "max_output": read_output,
    "chats": read_flag,
    "tools": read_flag,
    "most_tools": lambda value: read_count(value, 1, _MOST_TOOLS),
    "images": read_flag,
    "thinking": read_flag,
    "efforts": read_efforts,
    "sampling": read_flag,
    "adaptive_thinking": read_flag,
    "replay": _read_replay,
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
    """Return the facts that are known as JSON, without the model's id.

    What holds only while a server has loaded a model is left out.
    """
    known = {n: v for n, v in facts.known_fields().items() if n in _READERS}
    if facts.price is not None:
        prices = {name: getattr(facts.price, name) for name in Price.__struct_fields__}
        known["price"] = {n: p for n, p in prices.items() if p is not None}
    if facts.efforts:
        known["efforts"] = list(facts.efforts)
    return known


# How much a model should reason, and the nearest value that it accepts.


def nearest_effort(wanted: str, accepted: Iterable[str]) -> str:
    """Return the accepted effort that is nearest to the wanted one.

    Of two that are equally near it is the lower one, which costs less. `none` stands
    only for itself, unless nothing else is accepted. "" where no effort is wanted or
    accepted.
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
    """Return the effort to send, and a sentence where one is wanted and none can be.

    `usual` are accepted where nobody knows which ones a model accepts.
    """
    accepted = () if facts.thinking is False else facts.efforts or usual
    effort = nearest_effort(wanted, accepted)
    is_lost = not effort and wanted not in ("", "none")
    return effort, unsent_effort(wanted) if is_lost else ""


def unsent_effort(wanted: str) -> str:
    """Return the sentence for an effort that cannot be sent in any form."""
    return f"This model has no setting for effort, so `{wanted}` was not sent."
