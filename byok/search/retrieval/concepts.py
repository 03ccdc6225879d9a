"""Find the words of code for concepts that a question describes in a user's words.

A user asks what throws old entries away; the code says evict, purge or prune. The table
`concepts.tsv` has one concept a line: phrases of users, separated by commas, a tab, and
at most six words of code, the likeliest first. All words of a phrase must stand near
each other in the question, in any order. The table is written by hand, after a count of
which words of comments go with which words of names in sixty repositories.

Technical words have few lines: `dir` does not help a user who says `directory`
(measured: .01 nDCG@10 worse on questions that use words of the code).
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from byok.search.index.parse.tokens import stem, words
from byok.search.retrieval.foreign.words import read_entries

_TABLE = resources.files("byok.search.retrieval") / "concepts.tsv"
MAX_WEIGHT = 0.5
_WEIGHTS = (MAX_WEIGHT, 0.4, 0.3, 0.3, 0.3, 0.3)  # by position in the line
_MAX_QUESTION_WORDS = 100
_MAX_CODE_WORDS = 30
_MAX_WORDS_BETWEEN = 3  # other words among those of a phrase


class Concepts(NamedTuple):
    """The words of code for the concepts of a question.

    Attributes:
        code: weight by word of code; at most 30.
        explained: stems of the question whose concept has other words in code.
    """

    code: dict[str, float]
    explained: frozenset[str]


class _Concept(NamedTuple):
    phrase: tuple[str, ...]  # stems
    reach: int  # maximum distance between two of them, in words
    code: tuple[str, ...]


@cache
def load_concepts() -> dict[str, list[_Concept]]:
    """Return the concepts, by the rarest stem of their phrase."""
    concepts: list[_Concept] = []
    for phrases, code in read_entries(_TABLE.read_text("utf-8")).items():
        names = tuple(code.split())
        for phrase in phrases.split(", "):
            stems = tuple(map(stem, words(phrase)))
            words_between = _MAX_WORDS_BETWEEN if min(map(len, stems)) > 2 else 1
            concepts.append(_Concept(stems, len(stems) - 1 + words_between, names))
    common = Counter(word for concept in concepts for word in concept.phrase)
    by_rarest_stem: dict[str, list[_Concept]] = {}
    for concept in concepts:
        key = min(concept.phrase, key=common.__getitem__)
        by_rarest_stem.setdefault(key, []).append(concept)
    return by_rarest_stem


def read_concepts(question_words: Sequence[str]) -> Concepts:
    """Return the words of code for the concepts in the words of a question."""
    stems = [stem(word.lower()) for word in question_words[:_MAX_QUESTION_WORDS]]
    table = load_concepts()
    code: dict[str, float] = {}
    explained: set[str] = set()
    for position, key in enumerate(stems):
        for concept in table.get(key, ()):
            reach = concept.reach
            context = stems[max(0, position - reach) : position + reach + 1]
            if any(context.count(w) < concept.phrase.count(w) for w in concept.phrase):
                continue
            explained.update({*concept.phrase}.difference(map(stem, concept.code)))
            for word, weight in zip(concept.code, _WEIGHTS, strict=False):
                if word in code or len(code) < _MAX_CODE_WORDS:
                    code[word] = max(weight, code.get(word, 0.0))
    return Concepts(code, frozenset(explained))
