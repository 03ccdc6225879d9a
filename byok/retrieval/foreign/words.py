"""English words for the words of a question that are in another language.

Code is written with English words, so a question in Chinese finds little by itself.
Tables of programming terms give English words for it, with less weight than words that
stand in the question. Its own words still count: comments may be in its language.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from byok.index.parse.tokens import IDEOGRAPHS, expand
from byok.retrieval.foreign.forms import find_entry
from byok.retrieval.foreign.latin import Guess, guess, languages_of, says_nothing
from byok.retrieval.foreign.segments import LONGEST_RUN, Segment, segment
from byok.retrieval.foreign.tables import load_table, simplified_forms, stemmer

# By place in the entry: the first word is the likeliest. Chosen on Chinese questions.
_WEIGHTS = (0.8, 0.6, 0.5, 0.4)
LIKELIEST = _WEIGHTS[0]
_MOST_WORDS = 40
_MOST_READ = 100  # words with spaces between
_LONGEST_PHRASE = 4
_HANGUL = "\uac00"
_SHORTEST_PART, _LONGEST_LINK = 3, 2  # of a German compound
_LONGEST_PART, _LONGEST_COMPOUND = 24, 64
_SHORT_PARTS = frozenset(
    ("api", "bit", "job", "log", "sql", "tag", "typ", "url", "web")
)


class Foreign(NamedTuple):
    """What the words of other languages in a question mean.

    Attributes:
        english: weight by English word, in the order of the question; at most 40.
        likely: the first English word of each entry.
        idle: terms of the question that say nothing about code.
        own: other terms of the question, with the English words of their entry.
    """

    english: dict[str, float]
    likely: frozenset[str]
    idle: frozenset[str]
    own: dict[str, str]


def read_foreign(said: Sequence[str]) -> Foreign:
    """Return what those words of a question mean that are in another language."""
    meanings = _Meanings()
    runs = [word.lower() for word in said if word[0] >= IDEOGRAPHS]
    if runs:
        _read_runs(runs, meanings)
    _read_words([word.lower() for word in said if word[0] < IDEOGRAPHS], meanings)
    return meanings.result()


class _Meanings:
    """Collects English words and idle terms."""

    def __init__(self) -> None:
        self._english: dict[str, float] = {}
        self._likely: set[str] = set()
        self._idle: set[str] = set()
        self._own: dict[str, str] = {}
        self._unknown: set[str] = set()

    def add(self, english: str, parts: Iterable[str] = ()) -> None:
        """Add the English words of an entry, and those of the terms in its term.

        The likeliest word of each part counts as much as that of the entry: the words
        of "request context" are no alternatives.
        """
        words = english.split()
        self._likely.update(words[:1])
        certain = {word for part in parts for word in part.split()[:1]}
        for word, weight in zip(words, _WEIGHTS, strict=False):
            weight = _WEIGHTS[0] if word in certain else weight
            known = self._english.get(word, 0.0)
            if known or len(self._english) < _MOST_WORDS:
                self._english[word] = max(weight, known)

    def own(self, terms: Iterable[str], english: str | None) -> None:
        """Add terms of the question and what they mean; None if that is not known."""
        for term in terms:
            if english is None:
                self._unknown.add(term)
            elif english:
                self._own[term] = english
            else:
                self._idle.add(term)

    def result(self) -> Foreign:
        """Return all that was added; a term is idle if it is so everywhere."""
        idle = frozenset(self._idle - self._unknown - self._own.keys())
        own = {t: words for t, words in self._own.items() if t not in self._unknown}
        return Foreign(self._english, frozenset(self._likely), idle, own)


def _read_runs(runs: Sequence[str], meanings: _Meanings) -> None:
    """Read Chinese, Japanese and Korean, which has particles at its words."""
    kana = any("\u3040" <= letter <= "\u30ff" for run in runs for letter in run)
    others: tuple[str, ...] = ("ja", "zh") if kana else ("zh",)
    room = LONGEST_RUN
    for run in runs:
        run = run[:room]
        room -= len(run)
        if not run:
            return
        languages = ("ko",) if run[0] >= _HANGUL else others
        entry: list[Segment | None] = [None] * len(run)
        for found in _segments(run, languages):
            meanings.add(found.english, found.parts)
            entry[found.start : found.end] = [found] * (found.end - found.start)
        for place, term in enumerate(expand(run)):
            meanings.own((term,), _meaning_of(entry[place : place + len(term)]))


def _meaning_of(entries: Sequence[Segment | None]) -> str | None:
    """Return the English words for characters that lie in these entries.

    Characters of which one is in a word that says nothing say nothing either.
    """
    if any(entry and not entry.english for entry in entries):
        return ""
    first = entries[0]
    return first.english if first and all(e is first for e in entries) else None


def _segments(run: str, languages: tuple[str, ...]) -> list[Segment]:
    """Find the terms of a run; what one table does not know is left to the next."""
    first, *others = languages
    table = load_table(first)
    text = run.translate(simplified_forms()) if first == "zh" else run
    found = list(segment(text, table.entries, table.longest))
    if not others:
        return found
    end = 0
    gaps = []
    for part in (*found, Segment(len(run), len(run), "")):
        if part.start - end > 1:
            gaps.append((end, run[end : part.start]))
        end = part.end
    for start, gap in gaps:
        found += [
            Segment(part.start + start, part.end + start, part.english)
            for part in _segments(gap, tuple(others))
            if part.end - part.start > 1
        ]
    return sorted(found)


def _read_words(words: Sequence[str], meanings: _Meanings) -> None:
    """Read the languages that put spaces between words."""
    words = words[:_MOST_READ]
    if any("\u0400" <= word[0] <= "\u04ff" for word in words):
        _look_up(words, "ru", meanings)
    guessed = guess(words)
    language = guessed.languages[0] if guessed.sure else _decide(words, guessed)
    if language:
        _look_up(words, language, meanings)
        return
    for word in words:
        if not word.isascii():
            for language in languages_of(word):
                if _look_up([word], language, meanings):
                    break


def _decide(words: Sequence[str], guessed: Guess) -> str:
    """Return the language whose table knows most of the words, "" if that are few."""
    best, most = "", min(2, len(words)) - 1
    for language in guessed.languages:
        count = _look_up(words, language, _Meanings())
        if count > most:
            best, most = language, count
    return best


def _look_up(words: Sequence[str], language: str, meanings: _Meanings) -> int:
    """Add what the words mean in a language; return how many words it knows."""
    table = load_table(language)
    stem = stemmer(language)
    stems = [stem(word) for word in words]
    place = known = 0
    while place < len(words):
        for size in range(min(_LONGEST_PHRASE, len(words) - place), 0, -1):
            phrase = " ".join(words[place : place + size])
            stemmed = " ".join(stems[place : place + size])
            english = find_entry(phrase, stemmed, language, table)
            if english is not None:
                break
        else:
            size, english = 1, _compound(words[place], language, meanings)
        if english is None and says_nothing(words[place], language):
            english = ""
        own = words[place : place + size]
        for word in own:
            meanings.own(expand(word), english)
        if english:
            meanings.add(english)
            if not set(own) <= set(english.split()):  # else it may be an English word
                known += size
        place += size
    return known


@lru_cache(maxsize=1)
def _parts_of_compounds() -> dict[str, str]:
    """Return what German compounds consist of; most short stems are chance there."""
    return {
        term: english
        for term, english in load_table("de").entries.items()
        if len(term) > _SHORTEST_PART or term in _SHORT_PARTS
    }


@lru_cache(maxsize=_MOST_READ)
def _split_compound(word: str) -> tuple[Segment, ...]:
    """Return the terms in a compound, in order; gaps may be between."""
    entries = _parts_of_compounds()
    return tuple(segment(word, entries, _LONGEST_PART, _SHORTEST_PART))


def _compound(word: str, language: str, meanings: _Meanings) -> str | None:
    """Return the English words of a German compound, if its parts are known."""
    if language != "de" or not 2 * _SHORTEST_PART < len(word) <= _LONGEST_COMPOUND:
        return None
    parts = _split_compound(word)
    covered = sum(part.end - part.start for part in parts)
    if len(word) - covered > _LONGEST_LINK * len(parts):
        return None
    for part in parts[1:]:
        meanings.add(part.english)
    return parts[0].english if parts else None
