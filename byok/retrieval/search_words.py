"""Choose the words of a question that are searched without an index."""

import re
from collections.abc import Mapping

from byok.index.parse.tokens import IDEOGRAPHS, expand, stem, words
from byok.retrieval.foreign.tables import normalize
from byok.retrieval.foreign.words import read_foreign
from byok.retrieval.query import STOP_WORDS, TASK_WORDS

ASK_IN_ENGLISH = (
    "Most code is written with English words: ask again in English, with any"
    " identifiers that you know."
)
_WORD = re.compile(
    r"[A-Za-z_\u00c0-\u1fff][A-Za-z0-9_\u00c0-\u1fff]{2,}"
    r"|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}"  # kana, han, hangul
)
_LONGEST_WORD = 4  # of kana, han and hangul; longer ones are phrases
_LONGEST_QUERY = 10_000
_LONGEST_TOKEN = 64
_TOKENS = 8
_SPACED_WORDS, _OWN_WORDS = 4, 2  # of a question with words of another language


def search_words(text: str) -> list[str]:
    """Return what to search for: at most eight words, else the start of the text.

    Task words come last, and stop words are used only if there is nothing else. Of
    Chinese, Japanese and Korean, which have no spaces, a run of more than four
    characters is searched by pairs of characters. For words of other languages the
    likeliest English words are searched too, before words without spaces.
    """
    text = normalize(text, _LONGEST_QUERY)
    foreign = read_foreign(words(text))
    said: dict[str, str] = {}
    for found in _WORD.findall(text):
        whole = found[0] < IDEOGRAPHS or len(found) <= _LONGEST_WORD
        for word in (found[:_LONGEST_TOKEN],) if whole else expand(found):
            said.setdefault(word.lower(), word)
    telling = [
        word
        for low, word in said.items()
        if stem(low) not in STOP_WORDS and low not in foreign.idle
    ]
    telling.sort(key=lambda word: stem(word.lower()) in TASK_WORDS)
    if foreign.english:
        telling = _with_english(telling, foreign.english)
    if said:
        return (telling or list(said.values()))[:_TOKENS]
    pieces = (piece.strip() for piece in re.split(r"[\x00\r\n]+", text))
    first = next(filter(None, pieces), "")[:_LONGEST_TOKEN]
    return [first] if first else []


def _with_english(said: list[str], english: Mapping[str, float]) -> list[str]:
    """Put English words after at most four words with spaces and before the rest."""
    spaced = [word for word in said if word[0] < IDEOGRAPHS][:_SPACED_WORDS]
    rest = [word for word in said if word not in spaced]
    known = {word.lower() for word in spaced}
    # A word of two letters, such as "id", is in every file.
    fresh = [word for word in english if word not in known and len(word) > 2]
    fresh.sort(key=lambda word: (stem(word) in TASK_WORDS, -english[word]))
    room = _TOKENS - len(spaced) - min(len(rest), _OWN_WORDS)
    return [*spaced, *fresh[:room], *rest]
