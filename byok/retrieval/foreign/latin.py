"""Tell in which language a question in Latin letters is written, without a table.

Only function words, letters that English does not use, and endings count. A question in
plain English must never be taken for another language, so one hint is not enough.
"""

from collections.abc import Sequence
from typing import NamedTuple

LATIN = ("es", "pt", "de", "fr")
_MOST_WORDS = 300
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
_ENDINGS = {
    "es": ("cion", "ciones", "miento", "adores"),
    "pt": ("acao", "acoes", "adores"),
    "de": ("ierung", "ierungen", "ieren", "keit", "schaft"),
    "fr": ("isation", "ateur", "ateurs"),
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
    said = set(lowered[:_MOST_WORDS])
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
        for name, endings in _ENDINGS.items()
        if len(word) > 6 and word.endswith(endings)
    }
    return Guess(tuple(likely), False)


def says_nothing(word: str, language: str) -> bool:
    """Tell whether a word is a function word of a language."""
    return any(name == language for name, _ in _POINTS.get(word, ()))
