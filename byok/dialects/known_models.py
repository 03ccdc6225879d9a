"""The table of known models: windows, prices and more, from public lists, by vendor.

`scripts/known_models` writes `known_models.json`, and `byok models update` a newer
table. A window, a price or a cap of output belongs to the host of its row. What a model
can do is the same on every host.

The table is `{"source", "licence", "date", "vendors": {PRESET: {MODEL: ROW}}}`. A row
is an array without its last unknown values: the context window, the longest answer, a
letter for each known fact (`FLAGS`), the efforts, and the prices in US dollars per
million tokens of input, output, cache reads and cache writes.

Two public lists are read, both under the MIT licence: LiteLLM's
`model_prices_and_context_window.json` and models.dev's `api.json`. If two of their rows
are about one model, the lower limit and the higher price count. Anybody may propose
changes to the lists. So values of a wrong form are dropped, and a big change of a fact
counts only if both lists have the model.
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

Row: TypeAlias = list[Any]
Rows: TypeAlias = dict[str, dict[str, Row]]  # by vendor (name of a preset) and model

# Letters of the flags in a row: a capital letter means yes, a small one no.
FLAGS = {
    "i": "images",
    "t": "tools",
    "r": "thinking",
    "s": "sampling",
    "a": "adaptive_thinking",
}
RESPONSES_ONLY = "E"
# Vendors that make models: the abilities in their rows hold on other hosts.
MAKERS = tuple(name for name, preset in PRESETS.items() if preset.makes_models)
_STALE_DAYS = 90
_DATE = re.compile(r"-(?:20\d\d-?[01]\d-?[0-3]\d|latest)$|:free$")

# Presets by the vendor names of each list.
_LITELLM_VENDORS, _MODELS_DEV_VENDORS = (
    {preset.lists[n]: name for name, preset in PRESETS.items() if preset.lists[n]}
    for n in range(2)
)
_MODEL_NAME = re.compile(r"[\w.:/@+-]{1,128}", re.ASCII)
_CHAT_MODES = ("chat", "responses")
# LiteLLM's fields for facts and prices, models.dev's for prices.
_FACT_FIELDS = {
    "images": "supports_vision",
    "tools": "supports_function_calling",
    "thinking": "supports_reasoning",
    "sampling": "supports_sampling_params",
    "adaptive_thinking": "supports_adaptive_thinking",
}
_PRICE_FIELDS = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
_COST_FIELDS = ("input", "output", "cache_read", "cache_write")
_PRICES_START, _ROW_LENGTH = 4, 8  # indices in a row
_OPTIONAL_EFFORTS = {"none", "minimal", "xhigh", "max"}
_MIN_ROWS = 200
# A doubt: values of two lists that differ by the first factor, or by the second factor
# from the value in the table so far.
_MAX_DIFFERENCE, _MAX_CHANGE = 2, 4
_CHECKED_FACTS = {  # by their index in a row
    0: "window",
    4: "price of input",
    5: "price of output",
}


@dataclass(frozen=True)
class ModelTable:
    """A table of known models; the default is an empty one.

    `rows` are by vendor (the name of a preset) and model. `source` names the public
    lists and their version, `day` is when they were published.
    """

    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str = ""
    day: date = date.min

    def facts(self, vendor: str, model: str) -> ModelFacts:
        """Return what is known about a model at a vendor, or on any host."""
        if facts := self._find(vendor, model):
            return facts
        relative = preset_of(vendor).vendor
        if relative and (facts := self._find(relative, model)):
            return replace(facts, price=None)  # it differs by region and plan
        return self._find_by_maker(model)

    def models_of(self, vendor: str) -> list[str]:
        """Return the names of a vendor's models in the table."""
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

    def _find_by_maker(self, model: str) -> ModelFacts:
        """Return what a model can do on any host, according to its maker."""
        name = _DATE.sub("", family_name(model))
        for maker in MAKERS:
            if (row := (self.rows.get(maker) or {}).get(name)) is not None:
                facts = _read_row(model, row)
                return replace(
                    facts, window=0, max_output=0, efforts=(), dialect="", price=None
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
    """Read `[window, max output, flags, efforts, prices...]`."""
    if not isinstance(row, list):
        return ModelFacts(model)
    window, output, flags, efforts, *prices = _pad(row)[:_ROW_LENGTH]
    flags = flags if isinstance(flags, str) else ""
    listed = efforts.split() if isinstance(efforts, str) else ()
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
        efforts=tuple(effort for effort in EFFORTS if effort in listed),
        dialect=OPENAI_RESPONSES if RESPONSES_ONLY in flags else "",
        price=Price(*dollars) if any(d is not None for d in dollars) else None,
        **known,
    )


# --- Public lists of models ---


class Doubt(Struct, frozen=True):
    """A fact on which the lists, or a list and the previous table, do not agree."""

    vendor: str
    model: str
    fact: str
    values: tuple[float, float]
    used: float


class PublicList(Struct, frozen=True):
    """A public list; `rows` yields the vendor, model and row of each known model."""

    name: str
    url: str
    rows: Callable[[Mapping[str, Any]], Iterator[tuple[str, str, Row]]]


def read_list(listed: Any) -> tuple[str, Rows]:
    """Return the name of a list, recognised by its form, and its rows.

    Raises:
        ValueError: it is no known list, or has too few rows.
    """
    if isinstance(listed, dict):
        for source in LISTS:
            rows = _collect(source.rows(listed))
            if sum(map(len, rows.values())) >= _MIN_ROWS:
                return source.name, rows
    names = " or ".join(source.name for source in LISTS)
    raise ValueError(f"it is not the list of {names}, or far from whole")


def combine_lists(lists: Sequence[Rows], before: Rows) -> tuple[Rows, list[Doubt]]:
    """Return the previous rows, replaced by those of all lists, and the doubts.

    A fact that is more than four times, or less than a fourth, of its previous value
    counts only if two lists have the model.
    """
    combined: Rows = {vendor: {**rows} for vendor, rows in before.items()}
    doubts: list[Doubt] = []
    models = {
        (v, m): None for rows in lists for v, named in rows.items() for m in named
    }
    for vendor, model in models:
        listed = [
            rows[vendor][model] for rows in lists if model in rows.get(vendor, ())
        ]
        row = reduce(_merge, listed)
        if len(listed) > 1:
            doubts += _doubts(vendor, model, listed[0], listed[1], row, _MAX_DIFFERENCE)
        elif (old := before.get(vendor, {}).get(model)) is not None:
            old = _pad(old)
            if changes := _doubts(vendor, model, old, row, old, _MAX_CHANGE):
                doubts, row = [*doubts, *changes], old
        combined.setdefault(vendor, {})[model] = row
    return combined, doubts


def write_table(rows: Rows, *, source: str, licence: str, day: date) -> bytes:
    """Return the table as JSON, one line for each vendor."""
    lines = (
        b"%b:%b" % (orjson.dumps(vendor), orjson.dumps(_trim_rows(models)))
        for vendor, models in sorted(rows.items())
    )
    head = {"source": source, "licence": licence, "date": day.isoformat()}
    start = orjson.dumps(head)[:-1]
    return start + b',"vendors":{\n' + b",\n".join(lines) + b"\n}}\n"


def read_litellm(listed: Mapping[str, Any]) -> Rows:
    """Return the rows of LiteLLM's list, however few it has."""
    return _collect(_litellm_rows(listed))


def _collect(rows_found: Iterable[tuple[str, str, Row]]) -> Rows:
    vendors: Rows = {}
    for vendor, model, row in rows_found:
        if _MODEL_NAME.fullmatch(model):
            rows = vendors.setdefault(vendor, {})
            rows[model] = _merge(rows[model], row) if model in rows else row
    return vendors


def _litellm_rows(listed: Mapping[str, Any]) -> Iterator[tuple[str, str, Row]]:
    for name, entry in listed.items():
        if not isinstance(entry, dict) or entry.get("mode") not in _CHAT_MODES:
            continue
        provider = str(entry.get("litellm_provider"))
        vendor, model = (
            _LITELLM_VENDORS.get(provider),
            name.removeprefix(f"{provider}/"),
        )
        if vendor is not None and _is_listed(vendor, model):
            yield vendor, model, _litellm_row(entry)


def _is_listed(vendor: str, model: str) -> bool:
    """Tell whether the table lists a model.

    It has no fine-tunes, no regions of Azure and no second names of Fireworks.
    """
    if model.startswith("ft:") or (vendor == "azure" and "/" in model):
        return False
    return vendor != "fireworks" or model.startswith("accounts/")


def _litellm_row(entry: Mapping[str, Any]) -> Row:
    endpoints = entry.get("supported_endpoints")
    endpoints = endpoints if isinstance(endpoints, list) else []
    is_only = "/v1/responses" in endpoints and "/v1/chat/completions" not in endpoints
    costs = [entry.get(name) for name in _PRICE_FIELDS]
    return [
        read_window(entry.get("max_input_tokens")),
        read_output(entry.get("max_output_tokens")),
        _letters({fact: entry.get(name) for fact, name in _FACT_FIELDS.items()})
        + (RESPONSES_ONLY if is_only else ""),
        " ".join(_litellm_efforts(entry)),
        *(read_dollars(c * 1e6) if isinstance(c, int | float) else None for c in costs),
    ]


def _litellm_efforts(entry: Mapping[str, Any]) -> Iterable[str]:
    """Return the efforts; low, medium and high are implied by any of the others."""
    if levels := read_efforts(entry.get("reasoning_effort_levels")):
        return levels
    graded = {e: entry.get(f"supports_{e}_reasoning_effort") for e in _OPTIONAL_EFFORTS}
    if not any(graded.values()):
        return []
    return [
        effort
        for effort in EFFORTS
        if graded.get(effort, effort not in _OPTIONAL_EFFORTS)
    ]


def _models_dev_rows(listed: Mapping[str, Any]) -> Iterator[tuple[str, str, Row]]:
    for name, vendor in _MODELS_DEV_VENDORS.items():
        match listed.get(name):
            case {"models": dict(models)}:
                for model, entry in models.items():
                    match entry:
                        case {"limit": dict(), "modalities": {"output": ["text"]}} if (
                            _is_listed(vendor, model)
                        ):
                            yield vendor, model, _models_dev_row(entry)
            case _:
                continue


def _models_dev_row(entry: Mapping[str, Any]) -> Row:
    limit, costs = entry["limit"], read_object(entry, "cost")
    inputs = entry["modalities"].get("input")
    facts = {
        "images": "image" in inputs if isinstance(inputs, list) else None,
        "tools": entry.get("tool_call"),
        "thinking": entry.get("reasoning"),
        "sampling": entry.get("temperature"),
    }
    return [
        read_window(limit.get("input")) or read_window(limit.get("context")),
        read_output(limit.get("output")),
        _letters(facts),
        " ".join(_models_dev_efforts(entry.get("reasoning_options"))),
        *(read_dollars(costs.get(name)) for name in _COST_FIELDS),
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
    flags = ((letter, read_flag(facts.get(fact))) for letter, fact in FLAGS.items())
    return "".join(x.upper() if yes else x for x, yes in flags if yes is not None)


def _pad(row: Row) -> Row:
    """Return a row with its unknown values at the end."""
    return [*row, *[None] * (_ROW_LENGTH - len(row))]


def _merge(first: Row, second: Row) -> Row:
    limits = zip(first[:2], second[:2], strict=True)
    window, output = (min(filter(None, pair), default=0) for pair in limits)
    flags = first[2] + second[2]
    letters = {x.lower(): x for x in flags if x != RESPONSES_ONLY}
    for letter in letters:
        if letter in flags:  # a small letter: one of the rows says no
            letters[letter] = letter
    is_only = RESPONSES_ONLY in first[2] and RESPONSES_ONLY in second[2]
    prices = [
        max((p for p in pair if p is not None), default=None)
        for pair in zip(first[_PRICES_START:], second[_PRICES_START:], strict=True)
    ]
    efforts = [e for e in first[3].split() if not second[3] or e in second[3].split()]
    merged = "".join(letters[x] for x in FLAGS if x in letters)
    return [
        window,
        output,
        merged + (RESPONSES_ONLY if is_only else ""),
        " ".join(efforts or second[3].split()),
        *prices,
    ]


def _doubts(
    vendor: str, model: str, first: Row, second: Row, used: Row, max_factor: int
) -> list[Doubt]:
    doubts = []
    for index, fact in _CHECKED_FACTS.items():
        values = (first[index], second[index])
        low, high = sorted(value or 0 for value in values)
        is_known = low if index == 0 else None not in values
        if is_known and high > max_factor * low:
            doubts.append(Doubt(vendor, model, fact, values, used[index]))
    return doubts


def _trim_rows(rows: Mapping[str, Row]) -> dict[str, Row]:
    """Drop unknown values at the ends of rows, and empty rows."""
    trimmed = {}
    for model, row in sorted(rows.items()):
        while row and (row[-1] is None or (len(row) <= _PRICES_START and not row[-1])):
            row = row[:-1]  # a price may be 0
        if row:
            trimmed[model] = [
                int(v) if isinstance(v, float) and v == int(v) else v for v in row
            ]
    return trimmed


LISTS = (
    PublicList("models.dev", "https://models.dev/api.json", _models_dev_rows),
    PublicList(
        "LiteLLM",
        "https://raw.githubusercontent.com/BerriAI/litellm/main/"
        "model_prices_and_context_window.json",
        _litellm_rows,
    ),
)
