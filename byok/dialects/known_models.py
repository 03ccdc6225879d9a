"""The table of known models: windows, prices and more, from public lists, by vendor.

`scripts/known_models` writes `known_models.json`, and `byok models update` a
newer table; model_lists.py explains the format. A window, a price or a cap belongs to
the host that the row is about. What a model can do is the same on every host.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from typing import Any, TypeAlias

import orjson
from msgspec import Struct
from msgspec.structs import replace

from byok.core.wire.json_fields import read_object
from byok.dialects.families import family_name
from byok.dialects.model_facts import (
    EFFORTS,
    ModelFacts,
    Price,
    read_dollars,
    read_efforts,
    read_flag,
    read_output,
    read_window,
)
from byok.dialects.presets import OPENAI_RESPONSES, PRESETS, preset_of

# A capital letter means yes, a small one no; a missing letter means unknown.
FLAGS = {
    "i": "images",
    "t": "tools",
    "r": "thinking",
    "s": "sampling",
    "a": "adaptive_thinking",
}
RESPONSES_ONLY = "E"
# Those who make models: what they say of them holds on other hosts.
MAKERS = tuple(name for name, preset in PRESETS.items() if preset.makes_models)
_STALE_DAYS = 90
_DATE = re.compile(r"-(?:20\d\d-?[01]\d-?[0-3]\d|latest)$|:free$")


@dataclass(frozen=True)
class ModelTable:
    """The table in use; the default is an empty one.

    `rows` are by vendor, as presets are named, and model. `source` names the public
    list and its version, `day` is when it was published.
    """

    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str = ""
    day: date = date.min

    def facts(self, vendor: str, model: str) -> ModelFacts:
        """Return what is known about a model at a vendor, or on any host."""
        if own := self._find(vendor, model):
            return own
        relative = preset_of(vendor).vendor
        if relative and (same := self._find(relative, model)):
            return replace(same, price=None)  # of a region or a plan of its own
        return self._find_made(model)

    def models_of(self, vendor: str) -> list[str]:
        """Return the models that are known of a vendor."""
        relative = preset_of(vendor).vendor
        return [*(self.rows.get(vendor) or self.rows.get(relative) or ())]

    def is_stale(self, today: date) -> bool:
        """Tell whether the prices are older than 90 days."""
        return (today - self.day).days > _STALE_DAYS

    def _find(self, vendor: str, model: str) -> ModelFacts | None:
        rows = self.rows.get(vendor) or {}
        plain = model.removeprefix("models/").lower()  # Gemini's list has that prefix
        for name in (model, plain, _DATE.sub("", plain)):
            if (row := rows.get(name)) is not None:
                return _read_row(model, row)
        return None

    def _find_made(self, model: str) -> ModelFacts:
        """Return what the maker of a model says that it can do."""
        name = _DATE.sub("", family_name(model))
        for maker in MAKERS:
            if (row := (self.rows.get(maker) or {}).get(name)) is not None:
                made = _read_row(model, row)
                return replace(
                    made, window=0, max_output=0, efforts=(), dialect="", price=None
                )
        return ModelFacts(model)


EMPTY_TABLE = ModelTable()


def read_table(value: Any) -> ModelTable:
    """Read the table from JSON.

    Raises:
        ValueError: it is not a table of this format.
    """
    match value:
        case {"source": str(source), "date": str(day), "vendors": dict(vendors)}:
            pass
        case _:
            raise ValueError("it is not a table of models")
    if not all(isinstance(rows, dict) for rows in vendors.values()):
        raise ValueError("its vendors are no objects")
    return ModelTable(vendors, source, date.fromisoformat(day))


def _read_row(model: str, row: Any) -> ModelFacts:
    """Read `[window, max output, flags, efforts, prices...]`; the rest is unknown."""
    if not isinstance(row, list):
        return ModelFacts(model)
    window, output, flags, efforts, *prices = [*row, *[None] * (8 - len(row))][:8]
    flags = flags if isinstance(flags, str) else ""
    said = efforts.split() if isinstance(efforts, str) else ()
    known: dict[str, Any] = {
        name: letter.upper() in flags
        for letter, name in FLAGS.items()
        if letter in flags.lower()
    }
    dollars = [read_dollars(price) for price in prices]
    return ModelFacts(
        model,
        window=read_window(window),
        max_output=read_output(output),
        efforts=tuple(effort for effort in EFFORTS if effort in said),
        dialect=OPENAI_RESPONSES if RESPONSES_ONLY in flags else "",
        price=Price(*dollars) if any(d is not None for d in dollars) else None,
        **known,
    )


# Public lists of models, read into rows of the table of known models.
#
# Two lists are read: LiteLLM's `model_prices_and_context_window.json` and models.dev's
# `api.json`, both MIT. Anybody may propose what they say, so whatever has not the form
# of a fact is left out, and a fact that one list alone changes boldly is not believed.
#
# The table is `{"source", "licence", "date", "vendors": {PRESET: {MODEL: ROW}}}`. A row
# is an array without its last unknown values: the context window, the longest answer, a
# letter for each known fact (`FLAGS`), the efforts, and the prices
# in US dollars per million tokens of input, output, cache reads and cache writes. Where
# two rows are about one model, the lower limit and the higher price count.


Row: TypeAlias = list[Any]
Rows: TypeAlias = dict[
    str, dict[str, Row]
]  # by vendor, as presets are named, and model

# Presets by the names that the lists have for vendors.
_LITELLM_VENDORS, _MODELS_DEV_VENDORS = (
    {preset.lists[n]: name for name, preset in PRESETS.items() if preset.lists[n]}
    for n in range(2)
)
_NAME = re.compile(r"[\w.:/@+-]{1,128}", re.ASCII)
_CHATS = ("chat", "responses")
_FACTS = {
    "images": "supports_vision",
    "tools": "supports_function_calling",
    "thinking": "supports_reasoning",
    "sampling": "supports_sampling_params",
    "adaptive_thinking": "supports_adaptive_thinking",
}
_PRICES = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
_COSTS = ("input", "output", "cache_read", "cache_write")
_SIZES, _VALUES = 4, 8  # of a row: values before the prices, and all
_GRADED = {"none", "minimal", "xhigh", "max"}
_LEAST_ROWS = 200
_UNLIKE, _BOLD = 2, 4  # how many times as much as the other value
_DOUBTFUL = {0: "window", 4: "price of input", 5: "price of output"}


class Doubt(Struct, frozen=True):
    """A fact on which the lists, or a list and the table before, do not agree."""

    vendor: str
    model: str
    fact: str
    values: tuple[float, float]
    used: float


class PublicList(Struct, frozen=True):
    """A list that anybody may fetch; `rows` reads what byok wants of it."""

    name: str
    url: str
    rows: Callable[[Mapping[str, Any]], Iterator[tuple[str, str, Row]]]


def read_list(listed: Any) -> tuple[str, Rows]:
    """Return the name of a list, which its form tells, and its rows.

    Raises:
        ValueError: it is neither list, or has hardly a row.
    """
    if isinstance(listed, dict):
        for known in LISTS:
            rows = _gather(known.rows(listed))
            if sum(map(len, rows.values())) >= _LEAST_ROWS:
                return known.name, rows
    names = " or ".join(known.name for known in LISTS)
    raise ValueError(f"it is not the list of {names}, or far from whole")


def combine_lists(lists: Sequence[Rows], before: Rows) -> tuple[Rows, list[Doubt]]:
    """Return the rows of all lists over those before, and what is in doubt.

    A fact that is more than four times, or less than a fourth, of what it was before
    counts only if two lists have the model.
    """
    combined: Rows = {vendor: {**rows} for vendor, rows in before.items()}
    doubts: list[Doubt] = []
    models = {
        (v, m): None for rows in lists for v, named in rows.items() for m in named
    }
    for vendor, model in models:
        found = [rows[vendor][model] for rows in lists if model in rows.get(vendor, ())]
        row = reduce(_merge, found)
        if len(found) > 1:
            doubts += _doubts(vendor, model, found[0], found[1], row, _UNLIKE)
        elif (old := before.get(vendor, {}).get(model)) is not None:
            old = [*old, *[None] * (_VALUES - len(old))]
            if bold := _doubts(vendor, model, old, row, old, _BOLD):
                doubts, row = [*doubts, *bold], old
        combined.setdefault(vendor, {})[model] = row
    return combined, doubts


def write_table(rows: Rows, *, source: str, licence: str, day: date) -> bytes:
    """Return the table as JSON, one line for each vendor."""
    lines = (
        b"%b:%b" % (orjson.dumps(vendor), orjson.dumps(_trimmed(models)))
        for vendor, models in sorted(rows.items())
    )
    head = {"source": source, "licence": licence, "date": day.isoformat()}
    start = orjson.dumps(head)[:-1]
    return start + b',"vendors":{\n' + b",\n".join(lines) + b"\n}}\n"


def read_litellm(listed: Mapping[str, Any]) -> Rows:
    """Read LiteLLM's list, of any length."""
    return _gather(_litellm_rows(listed))


def _gather(found: Iterable[tuple[str, str, Row]]) -> Rows:
    vendors: Rows = {}
    for vendor, model, row in found:
        if _NAME.fullmatch(model):
            rows = vendors.setdefault(vendor, {})
            rows[model] = _merge(rows[model], row) if model in rows else row
    return vendors


def _litellm_rows(listed: Mapping[str, Any]) -> Iterator[tuple[str, str, Row]]:
    for name, given in listed.items():
        if not isinstance(given, dict) or given.get("mode") not in _CHATS:
            continue
        provider = str(given.get("litellm_provider"))
        vendor, model = (
            _LITELLM_VENDORS.get(provider),
            name.removeprefix(f"{provider}/"),
        )
        if vendor is not None and _is_wanted(vendor, model):
            yield vendor, model, _litellm_row(given)


def _is_wanted(vendor: str, model: str) -> bool:
    """Leave out fine-tunes, Azure's regions and Fireworks' second names."""
    if model.startswith("ft:") or (vendor == "azure" and "/" in model):
        return False
    return vendor != "fireworks" or model.startswith("accounts/")


def _litellm_row(given: Mapping[str, Any]) -> Row:
    endpoints = given.get("supported_endpoints")
    endpoints = endpoints if isinstance(endpoints, list) else []
    only = "/v1/responses" in endpoints and "/v1/chat/completions" not in endpoints
    costs = [given.get(name) for name in _PRICES]
    return [
        read_window(given.get("max_input_tokens")),
        read_output(given.get("max_output_tokens")),
        _letters({fact: given.get(name) for fact, name in _FACTS.items()})
        + (RESPONSES_ONLY if only else ""),
        " ".join(_litellm_efforts(given)),
        *(read_dollars(c * 1e6) if isinstance(c, int | float) else None for c in costs),
    ]


def _litellm_efforts(given: Mapping[str, Any]) -> Iterable[str]:
    """Return the efforts that are listed; low, medium and high go without saying."""
    if levels := read_efforts(given.get("reasoning_effort_levels")):
        return levels
    graded = {e: given.get(f"supports_{e}_reasoning_effort") for e in _GRADED}
    if not any(graded.values()):
        return []
    return [effort for effort in EFFORTS if graded.get(effort, effort not in _GRADED)]


def _models_dev_rows(listed: Mapping[str, Any]) -> Iterator[tuple[str, str, Row]]:
    for name, vendor in _MODELS_DEV_VENDORS.items():
        match listed.get(name):
            case {"models": dict(models)}:
                for model, given in models.items():
                    if _writes_text(given) and _is_wanted(vendor, model):
                        yield vendor, model, _models_dev_row(given)
            case _:
                continue


def _writes_text(given: Any) -> bool:
    match given:
        case {"limit": dict(), "modalities": {"output": ["text"]}}:
            return True
        case _:
            return False


def _models_dev_row(given: Mapping[str, Any]) -> Row:
    limit, costs = given["limit"], read_object(given, "cost")
    seen = given["modalities"].get("input")
    facts = {
        "images": "image" in seen if isinstance(seen, list) else None,
        "tools": given.get("tool_call"),
        "thinking": given.get("reasoning"),
        "sampling": given.get("temperature"),
    }
    return [
        read_window(limit.get("input")) or read_window(limit.get("context")),
        read_output(limit.get("output")),
        _letters(facts),
        " ".join(_models_dev_efforts(given.get("reasoning_options"))),
        *(read_dollars(costs.get(name)) for name in _COSTS),
    ]


def _models_dev_efforts(options: Any) -> Iterable[str]:
    for option in options if isinstance(options, list) else ():
        match option:
            case {"type": "effort", "values": values}:
                return read_efforts(values)
            case _:
                continue
    return ()


def _letters(facts: Mapping[str, Any]) -> str:
    said = ((letter, read_flag(facts.get(fact))) for letter, fact in FLAGS.items())
    return "".join(x.upper() if yes else x for x, yes in said if yes is not None)


def _merge(one: Row, other: Row) -> Row:
    limits = zip(one[:2], other[:2], strict=True)
    window, output = (min(filter(None, pair), default=0) for pair in limits)
    flags = one[2] + other[2]
    letters = {x.lower(): x for x in flags if x != RESPONSES_ONLY}
    for letter in letters:
        if letter in flags:  # one of them says no
            letters[letter] = letter
    is_only = RESPONSES_ONLY in one[2] and RESPONSES_ONLY in other[2]
    prices = [
        max((p for p in pair if p is not None), default=None)
        for pair in zip(one[_SIZES:], other[_SIZES:], strict=True)
    ]
    efforts = [e for e in one[3].split() if not other[3] or e in other[3].split()]
    merged = "".join(letters[x] for x in FLAGS if x in letters)
    return [
        window,
        output,
        merged + (RESPONSES_ONLY if is_only else ""),
        " ".join(efforts or other[3].split()),
        *prices,
    ]


def _doubts(
    vendor: str, model: str, one: Row, other: Row, used: Row, times: int
) -> list[Doubt]:
    found = []
    for place, fact in _DOUBTFUL.items():
        low, high = sorted((one[place] or 0, other[place] or 0))
        known = low if place == 0 else None not in (one[place], other[place])
        if known and high > times * low:
            values = (one[place], other[place])
            found.append(Doubt(vendor, model, fact, values, used[place]))
    return found


def _trimmed(rows: Mapping[str, Row]) -> dict[str, Row]:
    """Drop unknown values at the ends of rows, and rows that say nothing."""
    made = {}
    for model, row in sorted(rows.items()):
        while row and (row[-1] is None or (len(row) <= _SIZES and not row[-1])):
            row = row[:-1]  # a price may be 0
        if row:
            made[model] = [
                int(v) if isinstance(v, float) and v == int(v) else v for v in row
            ]
    return made


LISTS = (
    PublicList("models.dev", "https://models.dev/api.json", _models_dev_rows),
    PublicList(
        "LiteLLM",
        "https://raw.githubusercontent.com/BerriAI/litellm/main/"
        "model_prices_and_context_window.json",
        _litellm_rows,
    ),
)
