"""What repair may do to a value, as an oracle of its own."""

import json
from typing import Any


def strict(text: str) -> Any:
    """Read JSON as RFC 8259 has it; None where it is not, or is null."""
    try:
        text.encode()
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> None:
    raise ValueError(name)


def lossless(before: Any, after: Any) -> bool:
    """Tell whether the one is the other, or its one certain reading."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(
            lossless(before[key], after[key]) for key in before
        )
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(lossless, before, after))
    if type(before) is type(after):
        return bool(before == after)
    if isinstance(before, str) and isinstance(after, bool):
        return before.strip().lower() == str(after).lower()
    if isinstance(before, str):
        return lossless(strict(before), after)
    if isinstance(before, int) and isinstance(after, str):
        return after == str(before)
    return isinstance(before, float) and isinstance(after, int) and before == after
