"""Words of code for what a question says in a user's words.

A user asks what throws old entries away; the code says evict, purge or prune. The table
`concepts.tsv` has one concept a line: phrases that users say, separated by commas, a
tab, and at most six words of code, the likeliest first. All words of a phrase must
stand near each other in the question, in any order. It is written by hand; which words
of comments go with which words of names in sixty repositories was looked up.

Technical words have few lines: who says `directory` is not helped by `dir` (measured:
.01 nDCG@10 worse on questions that use words of the code).
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from byok.search.index.parse.tokens import stem, words
from byok.search.retrieval.foreign.words import read_entries

_TABLE = resources.files("byok.search.retrieval") / "concepts.tsv"
LIKELIEST = 0.5
_WEIGHTS = (LIKELIEST, 0.4, 0.3, 0.3, 0.3, 0.3)  # by place in the line
_MOST_READ = 100  # words of the question
_MOST_WORDS = 30
_BETWEEN = 3  # other words that may stand among those of a phrase


class Concepts(NamedTuple):
    """What the concepts of a question are called in code.

    Attributes:
        code: weight by word of code; at most 30.
        said: the stems by which the question says it.
    """

    code: dict[str, float]
    said: frozenset[str]


class _Concept(NamedTuple):
    phrase: tuple[str, ...]  # its stems
    reach: int  # how far from each other they may stand
    code: tuple[str, ...]


@cache
def load_concepts() -> dict[str, list[_Concept]]:
    """Return the concepts by the stem of their phrases that the fewest others have."""
    concepts: list[_Concept] = []
    for phrases, code in read_entries(_TABLE.read_text("utf-8")).items():
        names = tuple(code.split())
        for phrase in phrases.split(", "):
            stems = tuple(map(stem, words(phrase)))
            between = _BETWEEN if min(map(len, stems)) > 2 else 1
            concepts.append(_Concept(stems, len(stems) - 1 + between, names))
    common = Counter(word for concept in concepts for word in concept.phrase)
    found: dict[str, list[_Concept]] = {}
    for concept in concepts:
        key = min(concept.phrase, key=common.__getitem__)
        found.setdefault(key, []).append(concept)
    return found


def read_concepts(said: Sequence[str]) -> Concepts:
    """Return what the concepts are called that the words of a question name."""
    stems = [stem(word.lower()) for word in said[:_MOST_READ]]
    table = load_concepts()
    code: dict[str, float] = {}
    explained: set[str] = set()
    for place, key in enumerate(stems):
        for concept in table.get(key, ()):
            around = stems[max(0, place - concept.reach) : place + concept.reach + 1]
            if any(around.count(w) < concept.phrase.count(w) for w in concept.phrase):
                continue
            explained.update({*concept.phrase}.difference(map(stem, concept.code)))
            for word, weight in zip(concept.code, _WEIGHTS, strict=False):
                if word in code or len(code) < _MOST_WORDS:
                    code[word] = max(weight, code.get(word, 0.0))
    return Concepts(code, frozenset(explained))
