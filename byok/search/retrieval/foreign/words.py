"""Find English words for the words of a question in another language.

Code is written with English words, so a question in Chinese finds little by itself.
Tables of programming terms give English words for it, with less weight than the words
of the question. These still count, as comments may be in the language of the question.
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

# --- Tables of programming terms, loaded on first use ---
#
# `term_tables/<language>.tsv` has one entry a line: a term in NFKC and lower case, a
# tab, and at most four English words, the likeliest first. An entry without English
# words is a word without a meaning for code, such as "how" or "please". Of words with
# the same stem and meaning, a table needs only one. Lines that begin with # are
# comments.

LANGUAGES = ("zh", "ja", "ko", "ru", "es", "pt", "de", "fr")
_FOLDER = resources.files("byok.search.retrieval.foreign") / "term_tables"
_STEMMERS = {
    "ru": "russian",
    "es": "spanish",
    "pt": "portuguese",
    "de": "german",
    "fr": "french",
}
# Text is normalized in chunks, because the time for a run of combining marks grows with
# the square of its length.
_CHUNK = re.compile(r"\s*\S{0,250}")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


class TermTable(NamedTuple):
    """The terms of one language.

    Attributes:
        entries: English words separated by spaces, by term; in languages with spaces
            also by the term without accents, and by the stems of its words.
        longest: number of characters of the longest term.
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
    """Return a text as people write it on keyboards without its accents."""
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
    """Return a function that stems words of a language with spaces."""
    stem: Callable[[str], str] = Stemmer.Stemmer(_STEMMERS[language]).stemWord
    return stem


@lru_cache(maxsize=1)
def simplified_forms() -> Mapping[int, str]:
    """Return the table for `str.translate` of traditional and Japanese characters.

    It maps them to their simplified forms.
    """
    text = (_FOLDER / "simplified.txt").read_text("utf-8")
    pairs = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return str.maketrans({pair[0]: pair[1] for pair in pairs if len(pair) == 2})


def normalize(text: str, max_chars: int) -> str:
    """Return a text in NFKC (full-width letters become letters), cut to a length."""
    text = text[:max_chars]
    if text.isascii():
        return text
    normalized: list[str] = []
    remaining = max_chars
    for chunk in _CHUNK.findall(text):
        if remaining <= 0:
            break
        normalized.append(unicodedata.normalize("NFKC", chunk))
        remaining -= len(normalized[-1])
    return "".join(normalized)[:max_chars]


# --- Inflected forms of words ---
#
# Stemmers leave some forms apart ("erro", "erros"; "löscht", "löschen"), and give words
# of different meanings the same stem ("proceso", "procesador").

# Endings of forms, and after a slash the ending of the dictionary form.
_ENDINGS = {
    "pt": "ões/ão oes/ao ais/al eis/el éis/el ns/m es/ s/",
    "de": "iert/ieren ert/ern elt/eln et/en t/en",
    "ru": "уются/овать уется/овать уют/овать ует/овать ками/ок ков/ок кам/ок ках/ок "
    "ком/ок ки/ок ка/ок ку/ок ке/ок ью/ь и/ь",
}
_ENDING_PAIRS = {
    language: [tuple(pair.split("/")) for pair in pairs.split()]
    for language, pairs in _ENDINGS.items()
}
_GERMAN_PARTICIPLE = re.compile(
    "^(ab|an|auf|aus|bei|bereit|ein|fest|frei|her|herunter|hinzu|hoch|nach|um|vor|weg"
    "|weiter|wieder|zu|zurück|zurueck|zusammen|zwischen)?(?:ge|zu)(?=.{3})"
)
_RUSSIAN_PARTICIPLE = re.compile("(вл|пл|бл|мл|жд|[щчжш]|)ен(?:н[а-я]{1,3}|[аоы])?$")
# Stem ends of participles, and the possible stem ends of their verbs.
_RUSSIAN_STEM_ENDS = {
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
    """Return the English words for one or more words; None if the table lacks them.

    `stemmed` has the stems of the words; words and stems are separated by spaces.
    """
    if language == "ru":
        phrase = phrase.replace("ё", "е")
    english = table.entries.get(phrase)
    if english is not None:
        return english
    first, *other_words = phrase.split(" ", 1)
    for form in _dictionary_forms(first, language):
        if english := table.entries.get(" ".join((form, *other_words))):
            return english
    terms = table.stems.get(stemmed)
    if not terms:
        # A stemmer may mistake the end of a short word for an ending.
        return table.entries.get(stemmed)
    return table.entries[max(terms, key=lambda term: _similarity(term, phrase))]


def _similarity(term: str, word: str) -> tuple[int, int]:
    pairs = zip(term, word, strict=False)
    common_prefix = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return common_prefix, -len(term)


def _dictionary_forms(word: str, language: str) -> Iterator[str]:
    bases = [word]
    if language == "de":
        bases.append(_GERMAN_CASE.sub("", word))
        bases += [_GERMAN_PARTICIPLE.sub(r"\1", base) for base in bases]
    if language == "ru" and (match := _RUSSIAN_PARTICIPLE.search(word)):
        stem = word[: match.start()]
        for end in _RUSSIAN_STEM_ENDS.get(match[1], "").split() or [""]:
            yield f"{stem}{end}ить"
    for base in dict.fromkeys(bases):
        for ending, instead in _ENDING_PAIRS.get(language, ()):
            if base.endswith(ending):
                yield base[: -len(ending)] + instead


# --- The language of a question in Latin letters ---
#
# It is guessed from function words, letters that English does not use, and endings,
# without a table. A question in plain English must never be taken for another language,
# so one hint is not enough.

LATIN = ("es", "pt", "de", "fr")
_MAX_LATIN_WORDS = 300
_MAX_WORDS_FOR_ENDINGS = 8
_CERTAIN, _HINT = 2, 1

# Words of only one of these languages that are neither English words nor usual names in
# code.
_CERTAIN_WORDS = {
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
# Words of several of these languages, or that are also English words or code.
_HINT_WORDS = {
    "es": "como que se para por con de la el en un y al son sin lo su sus este esta "
    "entre cada",
    "pt": "como que se para por de da do em um ao sem seu sua este esta entre cada",
    "de": "die des den dem im am als es auch",
    "fr": "le la les des du de un une et en par pour sur qui que se il elle sans entre "
    "chaque au ses est comment",
}
_SPECIAL_LETTERS = {
    "es": "ñáéíóúü",
    "pt": "ãõçáéíóúâêôà",
    "de": "äöüß",
    "fr": "éèêëàâîïôùûçœ",
}
_LATIN_ENDINGS = {
    "es": "cion ciones xion xiones miento mientos adores dad dades uario uarios",
    "pt": "acao acoes icao icoes ucao ssao ssoes exao exoes adores dade dades",
    "de": "ung ungen ieren iert ierte keit keiten heit heiten schaft eich eichen "
    "eichern eicher eiten wort ketten lich liche licher isch ische ischer iger fahren",
    "fr": "isation ateur ateurs exion exions aison aisons",
}
_ENGLISH_WORDS = (
    "the and of to is are how where what which when why who does did with from that "
    "this these those it its by be not or for into if has have should can could would "
    "will we i you there was were been being after before find add fix make use using "
    "all any each between on except without only about than"
)
_ENGLISH_FUNCTION_WORDS = frozenset(_ENGLISH_WORDS.split())


def _points_by_word() -> dict[str, tuple[tuple[str, int], ...]]:
    points_by_word: dict[str, list[tuple[str, int]]] = {}
    for points, table in ((_CERTAIN, _CERTAIN_WORDS), (_HINT, _HINT_WORDS)):
        for language, text in table.items():
            for word in text.split():
                points_by_word.setdefault(word, []).append((language, points))
    return {word: tuple(languages) for word, languages in points_by_word.items()}


_POINTS = _points_by_word()


class Guess(NamedTuple):
    """Possible languages of a question, the likeliest first.

    Unless the first one `is_certain`, its table must know the words.
    """

    languages: tuple[str, ...]
    is_certain: bool


NO_GUESS = Guess((), False)


def guess_language(lowered: Sequence[str]) -> Guess:
    """Guess the language of a question from its words, which are in lower case.

    Each word counts once, however often it occurs.
    """
    unique_words = set(lowered[:_MAX_LATIN_WORDS])
    english = _CERTAIN * len(unique_words & _ENGLISH_FUNCTION_WORDS)
    scores: dict[str, int] = {}
    for word in unique_words:
        languages = _POINTS.get(word, ())
        if not languages and not word.isascii():
            languages = tuple((name, _HINT) for name in languages_of(word))
        for language, points in languages:
            scores[language] = scores.get(language, 0) + points
    if not scores:
        short = not english and len(lowered) <= _MAX_WORDS_FOR_ENDINGS
        return _guess_by_endings(lowered) if short else NO_GUESS
    best = max(scores.values())
    if best <= english:
        return NO_GUESS
    likely = tuple(name for name in LATIN if scores.get(name, 0) >= max(best - 1, 1))
    ranked = tuple(sorted(likely, key=lambda language: -scores[language]))
    return Guess(ranked, best > _CERTAIN and len(likely) == 1)


def languages_of(word: str) -> tuple[str, ...]:
    """Return the languages that use all letters of a word that is not ASCII."""
    letters = {letter for letter in word if not letter.isascii()}
    return tuple(name for name in LATIN if letters <= set(_SPECIAL_LETTERS[name]))


def _guess_by_endings(lowered: Sequence[str]) -> Guess:
    likely = {
        name: None
        for word in lowered
        for name, endings in _LATIN_ENDINGS.items()
        if len(word) > 6 and word.endswith(tuple(endings.split()))
    }
    return Guess(tuple(likely), False)


# --- Terms in a text without spaces ---

# A covered character counts more than any number of saved terms.
_POINTS_PER_CHARACTER = 1 << 12
MAX_RUN_CHARS = 400


class Segment(NamedTuple):
    """A term at `start` to `end` of a text.

    Attributes:
        english: its English words; "" for a word without a meaning for code.
        parts: the English words of the terms of which it consists.
    """

    start: int
    end: int
    english: str
    parts: tuple[str, ...] = ()


def segment(
    text: str, entries: Mapping[str, str], longest: int, shortest: int = 1
) -> Iterator[Segment]:
    """Yield the fewest terms that cover most of a text, in order.

    Terms have at least `shortest` characters. A term of one character counts only
    between other terms: beside unknown characters it is likely a part of another word.
    Only the first 400 characters are read.
    """
    text = text[:MAX_RUN_CHARS]
    lengths = _choose_lengths(text, entries, longest, shortest)
    position = 0
    is_known = True
    while position < len(text):
        length = lengths[position]
        end = position + length
        is_between = is_known and (end == len(text) or lengths[end] > 0)
        if length > 1 or (length == 1 and (is_between or not entries[text[position]])):
            term = text[position:end]
            yield Segment(position, end, entries[term], _parts(term, entries, shortest))
        is_known = length > 0
        position += length or 1


def _choose_lengths(
    text: str, entries: Mapping[str, str], longest: int, shortest: int
) -> list[int]:
    """Return the length of the term that starts at each character, 0 for none."""
    end = len(text)
    values = [0] * (end + 1)
    lengths = [0] * (end + 1)
    for start in range(end - 1, -1, -1):
        best, length = values[start + 1], 0
        for size in range(shortest, min(longest, end - start) + 1):
            if text[start : start + size] in entries:
                value = values[start + size] + size * _POINTS_PER_CHARACTER - 1
                if value >= best:
                    best, length = value, size
        values[start], lengths[start] = best, length
    return lengths


def _parts(term: str, entries: Mapping[str, str], shortest: int) -> tuple[str, ...]:
    if " " not in entries[term]:
        return ()
    inner = segment(term, entries, len(term) - 1, shortest)
    return tuple(part.english for part in inner)


# --- The English words of a question ---

# By position in the entry: the first word is the likeliest. Tuned on Chinese questions.
_WEIGHTS = (0.8, 0.6, 0.5, 0.4)
MAX_WEIGHT = _WEIGHTS[0]
_MAX_ENGLISH_WORDS = 40
_MAX_SPACED_WORDS = 100  # words with spaces between
_MAX_PHRASE_WORDS = 4
_FIRST_HANGUL = "\uac00"
_MIN_PART_CHARS, _MAX_LINK_CHARS = 3, 2  # of a German compound
_MAX_PART_CHARS, _MAX_COMPOUND_CHARS = 24, 64
_SHORT_PARTS = frozenset(
    ("api", "bit", "job", "log", "sql", "tag", "typ", "url", "web")
)


class ForeignWords(NamedTuple):
    """The meanings of the words of other languages in a question.

    Attributes:
        english: weight by English word, in the order of the question; at most 40.
        likely: the first English word of each entry.
        stop_terms: terms of the question without a meaning for code.
        meanings: other terms of the question, with the English words of their entry.
    """

    english: dict[str, float]
    likely: frozenset[str]
    stop_terms: frozenset[str]
    meanings: dict[str, str]


def read_foreign(question_words: Sequence[str]) -> ForeignWords:
    """Return the meanings of the words of a question that are in another language."""
    meanings = _Meanings()
    runs = [word.lower() for word in question_words if word[0] >= IDEOGRAPHS]
    if runs:
        _translate_runs(runs, meanings)
    spaced = [word.lower() for word in question_words if word[0] < IDEOGRAPHS]
    _translate_words(spaced, meanings)
    return meanings.result()


class _Meanings:
    """Collects the English words and the stop terms of a question."""

    def __init__(self) -> None:
        self._english: dict[str, float] = {}
        self._likely: set[str] = set()
        self._stop_terms: set[str] = set()
        self._meanings: dict[str, str] = {}
        self._unknown: set[str] = set()

    def add(self, english: str, parts: Iterable[str] = ()) -> None:
        """Add the English words of an entry; `parts` are those of its parts.

        The likeliest word of each part gets the full weight: the words of "request
        context" are not alternatives.
        """
        words = english.split()
        self._likely.update(words[:1])
        certain = {word for part in parts for word in part.split()[:1]}
        for word, weight in zip(words, _WEIGHTS, strict=False):
            weight = _WEIGHTS[0] if word in certain else weight
            weight_so_far = self._english.get(word, 0.0)
            if weight_so_far or len(self._english) < _MAX_ENGLISH_WORDS:
                self._english[word] = max(weight, weight_so_far)

    def add_terms(self, terms: Iterable[str], english: str | None) -> None:
        """Add terms; their `english` is "" for stop terms, None if it is unknown."""
        for term in terms:
            if english is None:
                self._unknown.add(term)
            elif english:
                self._meanings[term] = english
            else:
                self._stop_terms.add(term)

    def result(self) -> ForeignWords:
        """Return all meanings; a term is a stop term if it is one everywhere."""
        stop_terms = self._stop_terms - self._unknown - self._meanings.keys()
        known = {t: e for t, e in self._meanings.items() if t not in self._unknown}
        likely = frozenset(self._likely)
        return ForeignWords(self._english, likely, frozenset(stop_terms), known)


def _translate_runs(runs: Sequence[str], meanings: _Meanings) -> None:
    """Translate runs of Chinese, Japanese and Korean, which has particles at words."""
    kana = any("\u3040" <= letter <= "\u30ff" for run in runs for letter in run)
    languages_of_ideographs: tuple[str, ...] = ("ja", "zh") if kana else ("zh",)
    remaining = MAX_RUN_CHARS
    for run in runs:
        run = run[:remaining]
        remaining -= len(run)
        if not run:
            return
        languages = ("ko",) if run[0] >= _FIRST_HANGUL else languages_of_ideographs
        segment_at: list[Segment | None] = [None] * len(run)
        for part in _segment_run(run, languages):
            meanings.add(part.english, part.parts)
            size = part.end - part.start
            segment_at[part.start : part.end] = [part] * size
        for position, term in enumerate(expand(run)):
            parts = segment_at[position : position + len(term)]
            meanings.add_terms((term,), _meaning_of(parts))


def _meaning_of(entries: Sequence[Segment | None]) -> str | None:
    """Return the English words for characters in these entries; None if unknown.

    If one of the characters is in a stop word, all are stop words.
    """
    if any(entry and not entry.english for entry in entries):
        return ""
    first = entries[0]
    return first.english if first and all(e is first for e in entries) else None


def _segment_run(run: str, languages: tuple[str, ...]) -> list[Segment]:
    """Find the terms of a run; the next table is used for gaps of the one before."""
    first, *others = languages
    table = load_table(first)
    text = run.translate(simplified_forms()) if first == "zh" else run
    segments = list(segment(text, table.entries, table.longest))
    if not others:
        return segments
    end = 0
    gaps = []
    for part in (*segments, Segment(len(run), len(run), "")):
        if part.start - end > 1:
            gaps.append((end, run[end : part.start]))
        end = part.end
    for start, gap in gaps:
        segments += [
            Segment(part.start + start, part.end + start, part.english)
            for part in _segment_run(gap, tuple(others))
            if part.end - part.start > 1
        ]
    return sorted(segments)


def _translate_words(words: Sequence[str], meanings: _Meanings) -> None:
    """Translate words of languages that put spaces between words."""
    words = words[:_MAX_SPACED_WORDS]
    if any("\u0400" <= word[0] <= "\u04ff" for word in words):
        _translate(words, "ru", meanings)
    language = _choose_language(words)
    if language:
        _translate(words, language, meanings)
        return
    for word in words:
        if not word.isascii():
            for language in languages_of(word):
                if _translate([word], language, meanings):
                    break


def _choose_language(words: Sequence[str]) -> str:
    """Return the certain language, or the one whose table knows most words; else ""."""
    guessed = guess_language(words)
    if guessed.is_certain:
        return guessed.languages[0]
    best, max_known = "", min(2, len(words)) - 1
    for language in guessed.languages:
        count = _translate(words, language, _Meanings())
        if count > max_known:
            best, max_known = language, count
    return best


def _translate(words: Sequence[str], language: str, meanings: _Meanings) -> int:
    """Add the meanings of words in a language; return how many its table knows."""
    table = load_table(language)
    stem = stemmer(language)
    stems = [stem(word) for word in words]
    position = known_count = 0
    while position < len(words):
        for size in range(min(_MAX_PHRASE_WORDS, len(words) - position), 0, -1):
            phrase = " ".join(words[position : position + size])
            stemmed = " ".join(stems[position : position + size])
            english = find_entry(phrase, stemmed, language, table)
            if english is not None:
                break
        else:
            size, english = 1, _translate_compound(words[position], language, meanings)
        languages = (name for name, _ in _POINTS.get(words[position], ()))
        if english is None and language in languages:  # a function word
            english = ""
        phrase_words = words[position : position + size]
        for word in phrase_words:
            meanings.add_terms(expand(word), english)
        if english:
            meanings.add(english)
            # Words that are in their own entry may be English.
            if not set(phrase_words) <= set(english.split()):
                known_count += size
        position += size
    return known_count


@lru_cache(maxsize=1)
def _parts_of_compounds() -> dict[str, str]:
    """Return the parts of German compounds; most short stems match by chance."""
    return {
        term: english
        for term, english in load_table("de").entries.items()
        if len(term) > _MIN_PART_CHARS or term in _SHORT_PARTS
    }


@lru_cache(maxsize=_MAX_SPACED_WORDS)
def _split_compound(word: str) -> tuple[Segment, ...]:
    """Return the terms in a compound, in order, possibly with gaps between them."""
    parts = _parts_of_compounds()
    return tuple(segment(word, parts, _MAX_PART_CHARS, _MIN_PART_CHARS))


def _translate_compound(word: str, language: str, meanings: _Meanings) -> str | None:
    """Return the English words of a German compound, if its parts are known."""
    if language != "de" or not 2 * _MIN_PART_CHARS < len(word) <= _MAX_COMPOUND_CHARS:
        return None
    parts = _split_compound(word)
    covered = sum(part.end - part.start for part in parts)
    if len(word) - covered > _MAX_LINK_CHARS * len(parts):
        return None
    for part in parts[1:]:
        meanings.add(part.english)
    return parts[0].english if parts else None
