"""Turns text into search terms: splits identifiers into words and stems them.

`parseHTTPResponse` becomes `pars http respons =parsehttpresponse`: its parts, and the
whole name as one more term, marked with `=`, so that exact names score higher.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import Stemmer

_WORD = re.compile(
    # U+1680 is a space among the letters.
    r"[A-Za-z_$\u00c0-\u167f\u1681-\u1fff][A-Za-z0-9_$\u00c0-\u167f\u1681-\u1fff]*"
    r"|[0-9]{2,}"
    r"|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"  # kana, han, hangul
)
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
IDEOGRAPHS = "\u3040"
_MAX_IDENTIFIER = 64
_MAX_NUMBER = 8
# A larger cache costs each worker 177 MB at 50,000 files; this one hits 97 %.
_CACHED = 20_000
COMPOUND = "="

stem = lru_cache(maxsize=_CACHED)(Stemmer.Stemmer("english").stemWord)


def terms(text: str) -> Iterator[str]:
    """Yield the terms of a text, in order, repeated as often as they occur."""
    for word in _WORD.findall(text):
        yield from expand(word)


def expand_words(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield where each word of a text begins and ends, and its terms."""
    for word in _WORD.finditer(text):
        yield word.start(), word.end(), expand(word[0])


def join_terms(text: str) -> str:
    """Return the terms of a text with spaces between."""
    if text.isascii():  # as nearly all code is: no step of Python for each word
        return " ".join(filter(None, map(_join_expanded, _WORD.findall(text))))
    return " ".join([term for word in _WORD.findall(text) for term in expand(word)])


def words(text: str) -> list[str]:
    """Return the identifiers and numbers of a text as they stand."""
    return _WORD.findall(text)


def expand(word: str) -> tuple[str, ...]:
    """Return the terms of one identifier: stemmed parts, then the whole if several."""
    if word[0] >= IDEOGRAPHS:
        return tuple(word[i : i + 2] for i in range(len(word) - 1)) or (word,)
    return _expand(word)


def spell_terms(said: Iterable[str]) -> dict[str, str]:
    """Return the terms of words, each as the first of them that has it says it."""
    found: dict[str, str] = {}
    for word in said:
        if word[0] < IDEOGRAPHS:
            for part in (*_PART.findall(word), word):
                for term in expand(part)[-1:]:
                    found.setdefault(term, part)
    return found


@lru_cache(maxsize=_CACHED)
def _join_expanded(word: str) -> str:
    return " ".join(_expand(word))


@lru_cache(maxsize=_CACHED)
def _expand(word: str) -> tuple[str, ...]:
    first = word[0]
    if first.isdigit():
        return (word,) if len(word) <= _MAX_NUMBER else ()
    name = word.strip("_$")
    if not 2 <= len(name) <= _MAX_IDENTIFIER:
        return ()
    if not name.isascii():
        return (name.lower(),)
    parts = [part.lower() for part in _PART.findall(name)]
    found = [stem(part) for part in parts if len(part) > 1 and not part.isdigit()]
    if len(parts) > 1:
        found.append(COMPOUND + name.replace("_", "").replace("$", "").lower())
    return tuple(found)


def path_terms(path: str) -> list[str]:
    """Return the terms of a path: the stem of its name twice, four folders once.

    Depth and weights are those measured with the ranking (docs/reference/retrieval.md).
    """
    *folders, name = path.split("/")
    stem_of_name = name.rsplit(".", 1)[0] or name
    found = list(terms(_separate(stem_of_name))) * 2
    for folder in folders[-4:]:
        found += terms(_separate(folder))
    return found


def _separate(name: str) -> str:
    return name.replace("-", " ").replace(".", " ")
