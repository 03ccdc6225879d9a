"""Model facts: what is known about a model, and which source says so.

`Quirks` of a dialect hold how a vendor's API speaks. Facts hold what one model takes,
on whatever host it runs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any


class Replay(StrEnum):
    """Which of a model's earlier reasoning is sent back to it.

    `TOOL_TURNS` are the assistant's turns with tool calls, `EVERY_TURN` all of its
    turns.
    """

    NEVER = "never"
    TOOL_TURNS = "tool_turns"
    EVERY_TURN = "every_turn"


@dataclass(frozen=True, slots=True)
class Price:
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


@dataclass(frozen=True, slots=True)
class ModelFacts:
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


FIELDS = tuple(f.name for f in fields(ModelFacts) if f.name != "id")
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


@dataclass(frozen=True, slots=True)
class SourcedFacts:
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
