"""Code retrieval in the repository of a task: files that share words with a query."""

import re
from collections.abc import Mapping

from byok.retrieval.pack import PackedFile, Section
from byok.retrieval.render import HEADING, write_block

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_a-zA-Z]+")
_STEM = 5  # letters of a word that count
_MOST_FILES, _MOST_CHARS = 4, 8000


def find_code(files: Mapping[str, str], question: str) -> str:
    """Return the files that fit a question best, in the layout of byok's retrieval."""
    asked = _words(question)
    ranked = sorted(files, key=lambda p: (-_score(p, files[p], asked), p))
    blocks: list[str] = []
    room = _MOST_CHARS
    for path in ranked[:_MOST_FILES]:
        lines = files[path].splitlines()
        if lines and room > 0:
            whole = PackedFile(0, path, (Section(0, len(lines) - 1),))
            block = write_block(whole, lines, room).text
            room -= len(block)
            blocks.append(block)
    return HEADING + "".join(blocks)


def _score(path: str, text: str, asked: set[str]) -> int:
    """Count shared words; one of the path counts twice."""
    return len(asked & _words(text)) + len(asked & _words(path))


def _words(text: str) -> set[str]:
    return {word.lower()[:_STEM] for word in _WORD.findall(text)}
