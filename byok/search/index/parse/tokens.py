"""Turns text into search terms: splits identifiers into words and stems them.

`parseHTTPResponse` becomes `pars http respons =parsehttpresponse`: its parts, and the
whole name as one more term, with `=` before it, so that exact names score higher.
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
_MAX_IDENTIFIER_CHARS = 64
_MAX_DIGITS = 8
# 97 % of lookups hit this cache; an unlimited one costs each worker 177 MB.
_CACHE_SIZE = 20_000
COMPOUND = "="

stem = lru_cache(maxsize=_CACHE_SIZE)(Stemmer.Stemmer("english").stemWord)


def terms(text: str) -> Iterator[str]:
    """Yield the terms of a text, in order, repeated as often as they occur."""
    for word in _WORD.findall(text):
        yield from expand(word)


def expand_words(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the start and end offset of each word of a text, and its terms."""
    for word in _WORD.finditer(text):
        yield word.start(), word.end(), expand(word[0])


def join_terms(text: str) -> str:
    """Return the terms of a text, joined by spaces."""
    if text.isascii():  # as nearly all code: `map` needs no Python step per word
        return " ".join(filter(None, map(_join_expanded, _WORD.findall(text))))
    return " ".join([term for word in _WORD.findall(text) for term in expand(word)])


def words(text: str) -> list[str]:
    """Return the identifiers and numbers of a text, unchanged."""
    return _WORD.findall(text)


def expand(word: str) -> tuple[str, ...]:
    """Return the terms of one identifier: stemmed parts, then the whole if several."""
    if word[0] >= IDEOGRAPHS:
        return tuple(word[i : i + 2] for i in range(len(word) - 1)) or (word,)
    return _expand(word)


def spell_terms(spellings: Iterable[str]) -> dict[str, str]:
    """Return the terms of words, each with its spelling in the first word with it."""
    spelling_of: dict[str, str] = {}
    for word in spellings:
        if word[0] < IDEOGRAPHS:
            for part in (*_PART.findall(word), word):
                for term in expand(part)[-1:]:
                    spelling_of.setdefault(term, part)
    return spelling_of


@lru_cache(maxsize=_CACHE_SIZE)
def _join_expanded(word: str) -> str:
    return " ".join(_expand(word))


@lru_cache(maxsize=_CACHE_SIZE)
def _expand(word: str) -> tuple[str, ...]:
    first = word[0]
    if first.isdigit():
        return (word,) if len(word) <= _MAX_DIGITS else ()
    name = word.strip("_$")
    if not 2 <= len(name) <= _MAX_IDENTIFIER_CHARS:
        return ()
    if not name.isascii():
        return (name.lower(),)
    parts = [part.lower() for part in _PART.findall(name)]
    result = [stem(part) for part in parts if len(part) > 1 and not part.isdigit()]
    if len(parts) > 1:
        result.append(COMPOUND + name.replace("_", "").replace("$", "").lower())
    return tuple(result)


def path_terms(path: str) -> list[str]:
    """Return the terms of a path: its name without extension twice, four folders once.

    Depth and weights were measured with the ranking (docs/reference/retrieval.md).
    """
    *folders, name = path.split("/")
    stem_of_name = name.rsplit(".", 1)[0] or name
    result = list(terms(_with_spaces(stem_of_name))) * 2
    for folder in folders[-4:]:
        result += terms(_with_spaces(folder))
    return result


def _with_spaces(name: str) -> str:
    return name.replace("-", " ").replace(".", " ")
