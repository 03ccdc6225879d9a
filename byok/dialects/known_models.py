"""The table of known models: what a public list says about the models of vendors.

`scripts/known_models` writes `known_models.json`, and `byok models update` a
newer table; model_lists.py explains the format. A window, a price or a cap belongs to
the host that the row is about. What a model can do is the same on every host.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from byok.dialects.families import family_name
from byok.dialects.model_facts import (
    EFFORTS,
    ModelFacts,
    Price,
    read_dollars,
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
