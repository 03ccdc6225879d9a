"""Each language: a text, and the names of its definitions as they come."""

import re
from pathlib import Path

_FILE = Path(__file__).with_suffix(".txt")
_HEAD = re.compile(r"^=== (\w+): ?(.*)\n", re.MULTILINE)


def _read(text: str) -> dict[str, tuple[str, str]]:
    _, *parts = _HEAD.split(text)
    rows = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {language: (sample, names) for language, names, sample in rows}


SAMPLES = _read(_FILE.read_text("utf-8"))
