"""Samples of text: a file has each below a line such as `=== word: more words`."""

import re
from pathlib import Path

_HEAD = re.compile(r"^=== (\w+): ?(.*)\n", re.MULTILINE)


def read_samples(name: str) -> list[tuple[str, str, str]]:
    """Return word, more words and text of each sample in a file beside this one."""
    text = Path(__file__).with_name(name).read_text("utf-8")
    _, *parts = _HEAD.split(text)
    return [*zip(parts[::3], parts[1::3], parts[2::3], strict=True)]


# Of each language a text, and the names of its definitions as they come.
LANGUAGES = {
    language: (sample, names)
    for language, names, sample in read_samples("language_samples.txt")
}
