"""The templates of files; each place has a name in braces, and is filled by code."""

import re
from collections.abc import Mapping
from importlib import resources

_PLACE = re.compile(r"\{([a-z]+)\}")


def fill(name: str, values: Mapping[str, str]) -> str:
    """Return a template with its places filled; a line that is left empty goes.

    A value is never searched for places of its own.
    """
    folder = resources.files("byok.service") / "templates"
    text = (folder / name).read_text("utf-8")
    lines = []
    for line in text.splitlines():
        filled = _PLACE.sub(lambda place: values[place[1]], line)
        if filled or not line:
            lines.append(filled)
    return "\n".join(lines) + "\n"
