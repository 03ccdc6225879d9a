"""English words for the words of a question in another language.

Code is written with English words, so a question in Chinese finds little by itself.
Tables of programming terms give English words for it, with less weight than words that
stand in the question. Its own words still count: comments may be in its language.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from itertools import takewhile
from typing import NamedTuple

import Stemmer

from byok.search.index.parse.tokens import IDEOGRAPHS, expand

# The tables of programming terms in other languages, loaded on first use.
#
# `term_tables/<language>.tsv` has one entry a line: a term in NFKC and lower case, a
# tab, and at most four English words, the most likely first. An entry without English
# words is a word that says nothing about code, such as "how" or "please". Of words with
# one stem and one meaning a table needs one. Lines that begin with # are comments.


LANGUAGES = ("zh", "ja", "ko", "ru", "es", "pt", "de", "fr")
_FOLDER = resources.files("byok.search.retrieval.foreign") / "term_tables"
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


# Find the entry for a form of a word, in the languages that inflect their words.
#
# Stemmers leave some forms apart ("erro", "erros"; "löscht", "löschen") and give words
# with different meanings the same stem ("proceso", "procesador").


# What a form ends with, and what its dictionary form ends with instead.
_ENDINGS = {
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
    "de": (
        ("iert", "ieren"),
        ("ert", "ern"),
        ("elt", "eln"),
        ("et", "en"),
        ("t", "en"),
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
        for ending, instead in _ENDINGS.get(language, ()):
            if base.endswith(ending):
                yield base[: -len(ending)] + instead


# Tell in which language a question in Latin letters is written, without a table.
#
# Only function words, letters that English does not use, and endings count. A question
# in plain English must never be taken for another language, so one hint is not enough.


LATIN = ("es", "pt", "de", "fr")
_MOST_LATIN_WORDS = 300
_FEW_WORDS = 8
_SURE, _HINT = 2, 1

# Words that only one of these languages uses, and that are neither English words nor
# usual names in code.
_SURE_WORDS = {
    "es": "cómo qué cuál cuáles dónde cuándo está están los las una unos unas del "
    "cuando donde según también pero hace hacer puede pueden desde hasta sobre esto "
    "estos estas muestra después antes debe deben quién",
    "pt": "não são uma umas uns nas nos pelo pela pelos pelas onde quando quais qual "
    "você às aos também isso deste desta num numa feito feita fazer pode podem já "
    "após através é até quem está",
    "de": "wie wird werden der das und ist nicht ein eine einen einem einer eines wo "
    "welche welcher welches welchen wenn für über durch auf aus bei beim mit nach oder "
    "vom von zum zur sind wurde wurden kann können dass zwischen warum wann woher "
    "wer gibt man sich",
    "fr": "où quel quelle quels quelles dans avec sont ces cette aux pourquoi "
    "quand leurs être fait faire qu peut doit depuis après avant à",
}
# Words that several of them use, or that are also English or code.
_HINT_WORDS = {
    "es": "como que se para por con de la el en un y al son sin lo su sus este esta "
    "entre cada",
    "pt": "como que se para por de da do em um ao sem seu sua este esta entre cada",
    "de": "die des den dem im am als es auch",
    "fr": "le la les des du de un une et en par pour sur qui que se il elle sans entre "
    "chaque au ses est comment",
}
_LETTERS = {
    "es": "ñáéíóúü",
    "pt": "ãõçáéíóúâêôà",
    "de": "äöüß",
    "fr": "éèêëàâîïôùûçœ",
}
_LATIN_ENDINGS = {
    "es": (
        *("cion", "ciones", "xion", "xiones", "miento", "mientos", "adores", "dad"),
        *("dades", "uario", "uarios"),
    ),
    "pt": (
        *("acao", "acoes", "icao", "icoes", "ucao", "ssao", "ssoes", "exao", "exoes"),
        *("adores", "dade", "dades"),
    ),
    "de": (
        *("ung", "ungen", "ieren", "iert", "ierte", "keit", "keiten", "heit", "heiten"),
        *("schaft", "eich", "eichen", "eichern", "eicher", "eiten", "wort", "ketten"),
        *("lich", "liche", "licher", "isch", "ische", "ischer", "iger", "fahren"),
    ),
    "fr": ("isation", "ateur", "ateurs", "exion", "exions", "aison", "aisons"),
}
_ENGLISH_WORDS = (
    "the and of to is are how where what which when why who does did with from that "
    "this these those it its by be not or for into if has have should can could would "
    "will we i you there was were been being after before find add fix make use using "
    "all any each between on except without only about than"
)
_ENGLISH = frozenset(_ENGLISH_WORDS.split())


def _points() -> dict[str, tuple[tuple[str, int], ...]]:
    found: dict[str, list[tuple[str, int]]] = {}
    for points, table in ((_SURE, _SURE_WORDS), (_HINT, _HINT_WORDS)):
        for language, text in table.items():
            for word in text.split():
                found.setdefault(word, []).append((language, points))
    return {word: tuple(given) for word, given in found.items()}


_POINTS = _points()


class Guess(NamedTuple):
    """Languages that a question may be in, the likeliest first.

    `sure` says whether the first is certain; otherwise its table must know the words.
    """

    languages: tuple[str, ...]
    sure: bool


NO_GUESS = Guess((), False)


def guess(lowered: Sequence[str]) -> Guess:
    """Guess the language of a question from its words, which are in lower case.

    Each word counts once, however often it occurs.
    """
    said = set(lowered[:_MOST_LATIN_WORDS])
    english = _SURE * len(said & _ENGLISH)
    scores: dict[str, int] = {}
    for word in said:
        given = _POINTS.get(word, ())
        if not given and not word.isascii():
            given = tuple((language, _HINT) for language in languages_of(word))
        for language, points in given:
            scores[language] = scores.get(language, 0) + points
    if not scores:
        short = not english and len(lowered) <= _FEW_WORDS
        return _by_endings(lowered) if short else NO_GUESS
    best = max(scores.values())
    if best <= english:
        return NO_GUESS
    likely = tuple(name for name in LATIN if scores.get(name, 0) >= max(best - 1, 1))
    ranked = tuple(sorted(likely, key=lambda language: -scores[language]))
    return Guess(ranked, best > _SURE and len(likely) == 1)


def languages_of(word: str) -> tuple[str, ...]:
    """Return the languages that have all letters of a word that is not ASCII."""
    strange = {letter for letter in word if not letter.isascii()}
    return tuple(name for name in LATIN if strange <= set(_LETTERS[name]))


def _by_endings(lowered: Sequence[str]) -> Guess:
    likely = {
        name: None
        for word in lowered
        for name, endings in _LATIN_ENDINGS.items()
        if len(word) > 6 and word.endswith(endings)
    }
    return Guess(tuple(likely), False)


def says_nothing(word: str, language: str) -> bool:
    """Tell whether a word is a function word of a language."""
    return any(name == language for name, _ in _POINTS.get(word, ()))


# Find the terms of a table in a text that has no spaces between its words.


# A covered character is worth more than any number of terms less.
_CHARACTER = 1 << 12
LONGEST_RUN = 400


class Segment(NamedTuple):
    """A term at `start` to `end` of a text.

    Attributes:
        english: its English words; "" for a word that says nothing.
        parts: the English words of the terms that it consists of.
    """

    start: int
    end: int
    english: str
    parts: tuple[str, ...] = ()


def segment(
    text: str, entries: Mapping[str, str], longest: int, shortest: int = 1
) -> Iterator[Segment]:
    """Yield the terms that cover most of a text, in order; of equals, the fewest terms.

    Terms have at least `shortest` characters. A term of one character counts only
    between other terms: beside unknown characters it is likely a part of another word.
    Of a text only the first thousand characters are read.
    """
    text = text[:LONGEST_RUN]
    taken = _cover(text, entries, longest, shortest)
    place = 0
    known = True
    while place < len(text):
        size = taken[place]
        after = place + size
        between = known and (after == len(text) or taken[after] > 0)
        if size > 1 or (size == 1 and (between or not entries[text[place]])):
            term = text[place:after]
            yield Segment(place, after, entries[term], _parts(term, entries, shortest))
        known = size > 0
        place += size or 1


def _cover(
    text: str, entries: Mapping[str, str], longest: int, shortest: int
) -> list[int]:
    """Return the length of the term that starts at each character, 0 for none."""
    end = len(text)
    worth = [0] * (end + 1)
    taken = [0] * (end + 1)
    for start in range(end - 1, -1, -1):
        best, length = worth[start + 1], 0
        for size in range(shortest, min(longest, end - start) + 1):
            if text[start : start + size] in entries:
                value = worth[start + size] + size * _CHARACTER - 1
                if value >= best:
                    best, length = value, size
        worth[start], taken[start] = best, length
    return taken


def _parts(term: str, entries: Mapping[str, str], shortest: int) -> tuple[str, ...]:
    if " " not in entries[term]:
        return ()
    inner = segment(term, entries, len(term) - 1, shortest)
    return tuple(part.english for part in inner)


# By place in the entry: the first word is the likeliest. Chosen on Chinese questions.
_WEIGHTS = (0.8, 0.6, 0.5, 0.4)
MAX_WEIGHT = _WEIGHTS[0]
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
