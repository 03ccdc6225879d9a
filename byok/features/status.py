"""The status of a feature: meters and lines, which each display formats itself.

The page has a text for a meter's `name` and a line's `key` in each language, and shows
the text from here if it has none.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct, field

from byok.core.chat import Json
from byok.features.cost import write_cost


class Meter(Struct, frozen=True, tag_field="kind", tag="meter"):
    """How much of a limit, `most`, is used; None if that is counted elsewhere.

    An amount of dollars does not include `unpriced` requests.
    """

    name: str
    used: float | None
    most: float
    in_dollars: bool = False
    unpriced: int = 0


class StatusLine(Struct, frozen=True, tag_field="kind", tag="line"):
    """A sentence; it `warns` if something is wrong.

    `values` are inserted into the page's text for the `key`, `seconds` as a duration
    and `count` as a number.
    """

    text: str
    key: str = ""
    values: Mapping[str, float | str] = field(default_factory=dict)
    warns: bool = False


StatusRow: TypeAlias = Meter | StatusLine


def write_rows(rows: Iterable[Json]) -> list[str]:
    """Write encoded rows as lines of text."""
    return [
        _write_meter(row) if row["kind"] == "meter" else str(row["text"])
        for row in rows
    ]


def _write_meter(row: Json) -> str:
    used, name = row["used"], row["name"]
    limit = f"${row['most']:,.2f}" if row["in_dollars"] else f"{row['most']:,}"
    if used is None:
        return f"{name}: {limit} at most"
    if not row["in_dollars"]:
        return f"{name}: {used:,} of {limit} used"
    comma = "," if row["unpriced"] else ""
    return f"{name}: {write_cost(used, row['unpriced'])}{comma} of {limit} used"
