"""Guess which name was meant by one that is not known."""

from collections.abc import Iterable

_LONGEST = 100  # characters that are compared


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a question for the nearest known name, whatever its case; "" for none."""
    from difflib import get_close_matches  # an error only needs it

    names = {name.lower(): name for name in known}
    near = get_close_matches(given[:_LONGEST].lower(), names, 1)
    return f"Did you mean {names[near[0]]}?" if near else ""
