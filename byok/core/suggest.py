"""Suggest the known name that is most similar to an unknown one."""

from collections.abc import Iterable

_MAX_CHARS = 100  # characters that are compared


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a question with the most similar name, ignoring case; "" for none."""
    from difflib import get_close_matches  # an error only needs it

    names = {name.lower(): name for name in known}
    near = get_close_matches(given[:_MAX_CHARS].lower(), names, 1)
    return f"Did you mean {names[near[0]]}?" if near else ""
