"""Words beside those of a question: what the code says that matches it best.

The right code may have one word of a question and be one of many that do. So the pieces
that match best are asked which words they have in common that most other code has not,
and all is searched again with these too, at a low weight. In an index of few pieces no
word is rare, and nothing is added.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest

from byok.search.index.parse.tokens import COMPOUND, join_terms
from byok.search.retrieval.query import STOP_WORDS, TASK_WORDS, Query

READ = 10  # pieces that match best
_TAKEN, _CONSIDERED = 12, 60
_WEIGHT = 0.1  # of the best word; one of the question counts 1
_COMMON = 0.05  # share of all pieces: a word that more have says nothing
_SHORTEST = 3


def find_related_words(
    query: Query,
    pieces: Iterable[tuple[float, Sequence[str]]],
    share_of: Callable[[str], float],
) -> dict[str, float]:
    """Return the weights of words that pieces with these scores and lines have.

    `share_of` returns in which share of all pieces a word is.
    """
    said = defaultdict[str, float](float)
    for score, lines in pieces:
        counts = Counter(join_terms("\n".join(lines)).split())
        length = counts.total()
        for term, count in counts.items():
            said[term] += score * count / length
    known = STOP_WORDS | TASK_WORDS | query.terms.keys()
    new = [
        term
        for term in said  # of equals the first ones, not those of a set's order
        if term not in known and len(term) >= _SHORTEST and term[0] != COMPOUND
    ]
    worth = {
        term: said[term] * -math.log(share)
        for term in nlargest(_CONSIDERED, new, key=said.__getitem__)
        if 0 < (share := share_of(term)) < _COMMON
    }
    best = nlargest(_TAKEN, worth, key=worth.__getitem__)
    return {term: _WEIGHT * worth[term] / worth[best[0]] for term in best}
