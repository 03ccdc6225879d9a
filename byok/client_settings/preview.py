"""A change of a settings file as lines for people, without secrets."""

import difflib
from collections.abc import Callable

from byok.client_settings.encoding import decode_text

_CONTEXT = (
    1  # lines around a change, to find its place; no more, as others' keys are near
)


def preview_change(
    path: str, before: bytes | None, after: bytes | None, redact: Callable[[str], str]
) -> list[str]:
    """Return the lines of a difference; each goes through `redact`."""
    old, new = (_lines(raw) for raw in (before, after))
    difference = difflib.unified_diff(
        old,
        new,
        path if before is not None else "(no file)",
        path if after is not None else "(no file)",
        n=_CONTEXT,
        lineterm="",
    )
    return [redact(line) for line in difference]


def _lines(raw: bytes | None) -> list[str]:
    return decode_text(raw).text.splitlines() if raw else []
