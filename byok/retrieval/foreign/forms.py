"""Find the entry for a form of a word, in the languages that inflect their words.

Stemmers leave some forms apart ("erro", "erros"; "löscht", "löschen") and give words
with different meanings the same stem ("proceso", "procesador").
"""

import re
from collections.abc import Iterator
from itertools import takewhile

from byok.retrieval.foreign.tables import TermTable

# What a form ends with, and what its dictionary form ends with instead.
_ENDINGS = {
    "es": (("ciones", "ción"), ("siones", "sión"), ("ces", "z"), ("es", ""), ("s", "")),
    "pt": (
        ("ões", "ão"),
        ("oes", "ao"),
        ("ais", "al"),
        ("eis", "el"),
        ("éis", "el"),
        ("ns", "m"),
        ("es", ""),
        ("s", ""),
    ),
    "fr": (("aux", "al"), ("s", ""), ("x", "")),
    "de": (
        ("iert", "ieren"),
        ("ert", "ern"),
        ("elt", "eln"),
        ("et", "en"),
        ("t", "en"),
        ("en", ""),
        ("es", ""),
        ("er", ""),
        ("n", ""),
        ("e", ""),
        ("s", ""),
    ),
    "ru": (
        ("уются", "овать"),
        ("уется", "овать"),
        ("уют", "овать"),
        ("ует", "овать"),
        ("ками", "ок"),
        ("ков", "ок"),
        ("кам", "ок"),
        ("ках", "ок"),
        ("ком", "ок"),
        ("ки", "ок"),
        ("ка", "ок"),
        ("ку", "ок"),
        ("ке", "ок"),
        ("ью", "ь"),
        ("и", "ь"),
    ),
}
_GERMAN_PARTICIPLE = re.compile(
    "^(ab|an|auf|aus|bei|bereit|ein|fest|frei|her|herunter|hinzu|hoch|nach|um|vor|weg"
    "|weiter|wieder|zu|zurück|zurueck|zusammen|zwischen)?(?:ge|zu)(?=.{3})"
)
_RUSSIAN_PARTICIPLE = re.compile("(вл|пл|бл|мл|жд|[щчжш]|)ен(?:н[а-я]{1,3}|[аоы])?$")
# How a participle changes the end of its verb.
_RUSSIAN_CHANGES = {
    "вл": "в",
    "пл": "п",
    "бл": "б",
    "мл": "м",
    "жд": "д",
    "щ": "ст т",
    "ч": "т ч",
    "ж": "д з ж",
    "ш": "с ш",
}
_GERMAN_CASE = re.compile("(?<=t)e[nrsm]?$")


def find_entry(
    phrase: str, stemmed: str, language: str, table: TermTable
) -> str | None:
    """Return the English words for one or more words; None if they are no entry.

    `stemmed` has the stems of the words, which are separated by spaces in both.
    """
    if language == "ru":
        phrase = phrase.replace("ё", "е")
    found = table.entries.get(phrase)
    if found is not None:
        return found
    head, *rest = phrase.split(" ", 1)
    for form in _dictionary_forms(head, language):
        if found := table.entries.get(" ".join((form, *rest))):
            return found
    terms = table.stems.get(stemmed)
    if not terms:
        # A stemmer may take the end of a short word for an ending.
        return table.entries.get(stemmed)
    return table.entries[max(terms, key=lambda term: _likeness(term, phrase))]


def _likeness(term: str, word: str) -> tuple[int, int]:
    pairs = zip(term, word, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return same, -len(term)


def _dictionary_forms(word: str, language: str) -> Iterator[str]:
    bases = [word]
    if language == "de":
        bases.append(_GERMAN_CASE.sub("", word))
        bases += [_GERMAN_PARTICIPLE.sub(r"\1", base) for base in bases]
    if language == "ru" and (match := _RUSSIAN_PARTICIPLE.search(word)):
        stem = word[: match.start()]
        for end in _RUSSIAN_CHANGES.get(match[1], "").split() or [""]:
            yield f"{stem}{end}ить"
    for base in dict.fromkeys(bases):
        for ending, instead in _ENDINGS[language]:
            if base.endswith(ending):
                yield base[: -len(ending)] + instead
