"""Counts files that a model printed into the chat instead of editing them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NUMBER = re.compile(r"\s*\d+\t")  # as tools show lines
_LONGEST_BLOCK, _SHORTEST_FILE = 30, 3  # lines
_MOST_BLOCKS = 500  # of one text
_SHARE = 60  # percent of the lines of a file


def count_printed(texts: Iterable[str], *states: Mapping[str, str]) -> int:
    """Return how many fenced blocks of the texts are files.

    A block is one if it has more than 30 lines, or at least 60 % of the lines of a file
    in one of the states of the repository. Very short files do not count.
    """
    files = {
        text: _lines(text.splitlines()) for state in states for text in state.values()
    }
    wanted = [lines for lines in files.values() if len(lines) >= _SHORTEST_FILE]
    blocks = (b for text in texts for b in islice(fenced_blocks(text), _MOST_BLOCKS))
    return sum(_is_file(block, wanted) for block in blocks)


def _is_file(block: list[str], files: list[frozenset[str]]) -> bool:
    if len(block) > _LONGEST_BLOCK:
        return True
    lines = _lines(block)
    return any(100 * len(lines & file) >= _SHARE * len(file) for file in files)


def _lines(lines: Iterable[str]) -> frozenset[str]:
    bare = (_NUMBER.sub("", line, count=1).strip() for line in lines)
    return frozenset(line for line in bare if line)


def fenced_blocks(text: str) -> Iterator[list[str]]:
    """Give the lines of each fenced block; one without an end goes to the end."""
    mark = ""
    block: list[str] = []
    for line in text.splitlines():
        fence = _FENCE.match(line)
        closes = fence and fence[1].startswith(mark) and not line[fence.end() :].strip()
        if not mark and fence:
            mark, block = fence[1], []
        elif mark and closes:
            yield block
            mark = ""
        elif mark:
            block.append(line)
    if mark:
        yield block
