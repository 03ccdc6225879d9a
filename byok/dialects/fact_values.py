"""Values of model facts, as lists of models and files have them: checked and read.

Nothing of an upstream or a file is trusted: what is not valid counts as unknown.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from byok.dialects.efforts import EFFORTS
from byok.dialects.model_facts import ModelFacts, Price, Replay

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
        prices = {name: getattr(facts.price, name) for name in Price.__slots__}
        known["price"] = {n: p for n, p in prices.items() if p is not None}
    if facts.efforts:
        known["efforts"] = list(facts.efforts)
    return known
