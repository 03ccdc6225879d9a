"""The tables of programming terms in other languages, loaded on first use.

`term_tables/<language>.tsv` has one entry a line: a term in NFKC and lower case, a tab,
and at most four English words, the most likely first. An entry without English words is
a word that says nothing about code, such as "how" or "please". Lines that begin with #
are comments.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import Stemmer

LANGUAGES = ("zh", "ja", "ko", "ru", "es", "pt", "de", "fr")
_FOLDER = resources.files("byok.retrieval.foreign") / "term_tables"
_STEMMERS = {
    "ru": "russian",
    "es": "spanish",
    "pt": "portuguese",
    "de": "german",
    "fr": "french",
}
# The time to normalise a run of combining marks grows with the square of its length.
_PIECES = re.compile(r"\s*\S{0,250}")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


class TermTable(NamedTuple):
    """The terms of one language.

    Attributes:
        entries: English words separated by spaces, by term; of languages that write
            spaces, also by the term without accents, and by the stems of its words.
        longest: characters in the longest term.
        stems: the terms by the stems of their words.
    """

    entries: Mapping[str, str]
    longest: int
    stems: Mapping[str, tuple[str, ...]]


@lru_cache(maxsize=len(LANGUAGES))
def load_table(language: str) -> TermTable:
    """Return the table of a language; empty for a language that has none."""
    file = _FOLDER / f"{language}.tsv"
    entries = read_entries(file.read_text("utf-8")) if file.is_file() else {}
    stems: dict[str, tuple[str, ...]] = {}
    if language in _STEMMERS:
        for term, english in tuple(entries.items()):
            entries.setdefault(without_accents(term, language), english)
        stem = stemmer(language)
        for term in tuple(entries):
            stemmed = " ".join(map(stem, term.split()))
            stems[stemmed] = (*stems.get(stemmed, ()), term)
            entries.setdefault(stemmed, entries[term])
    return TermTable(entries, max(map(len, entries), default=0), stems)


def without_accents(text: str, language: str) -> str:
    """Return a text as people write it whose keyboards lack its accents."""
    if text.isascii():
        return text
    if language == "de":
        text = text.translate(_UMLAUTS)
    if language == "ru":
        return text.replace("ё", "е")
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def read_entries(text: str) -> dict[str, str]:
    """Return the entries of a table's text."""
    lines = (line.split("\t") for line in text.split("\n") if line[:1] != "#")
    return {line[0]: line[1] for line in lines if len(line) == 2}


@lru_cache(maxsize=len(_STEMMERS))
def stemmer(language: str) -> Callable[[str], str]:
    """Return what stems a word of a language that has stems."""
    stem: Callable[[str], str] = Stemmer.Stemmer(_STEMMERS[language]).stemWord
    return stem


@lru_cache(maxsize=1)
def simplified_forms() -> Mapping[int, str]:
    """Return the simplified form of traditional and Japanese characters.

    The form is what `str.translate` takes.
    """
    text = (_FOLDER / "simplified.txt").read_text("utf-8")
    pairs = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return str.maketrans({pair[0]: pair[1] for pair in pairs if len(pair) == 2})


def normalize(text: str, longest: int) -> str:
    """Return a text in NFKC, so that full-width letters are letters, and cut."""
    text = text[:longest]
    if text.isascii():
        return text
    made: list[str] = []
    room = longest
    for piece in _PIECES.findall(text):
        if room <= 0:
            break
        made.append(unicodedata.normalize("NFKC", piece))
        room -= len(made[-1])
    return "".join(made)[:longest]
