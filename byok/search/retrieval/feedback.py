"""Expand a question with words of the code that matches it best.

This is pseudo-relevance feedback. The right code may have only one word of a question,
like much other code. So the best chunks are searched for words that they have in common
and that are rare elsewhere, and the search is repeated with these words too, at a low
weight. In an index of few chunks no word is rare, and nothing is added.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest

from byok.search.index.parse.tokens import COMPOUND, join_terms
from byok.search.retrieval.query import STOP_WORDS, TASK_WORDS, Query

MAX_FEEDBACK_CHUNKS = 10
_MAX_WORDS, _MAX_CANDIDATES = 12, 60
_WEIGHT = 0.1  # of the best word; a word of the question has 1
_MAX_SHARE = 0.05  # of all chunks: words of more chunks are too common
_MIN_WORD_CHARS = 3


def find_related_words(
    query: Query,
    chunks: Iterable[tuple[float, Sequence[str]]],
    share_of: Callable[[str], float],
) -> dict[str, float]:
    """Return the weights of words that distinguish the best chunks from other code.

    `chunks` are their scores and lines; `share_of` returns the share of all chunks that
    have a word.
    """
    frequency = defaultdict[str, float](float)
    for score, lines in chunks:
        counts = Counter(join_terms("\n".join(lines)).split())
        length = counts.total()
        for term, count in counts.items():
            frequency[term] += score * count / length
    excluded = STOP_WORDS | TASK_WORDS | query.terms.keys()
    candidates = [
        term
        for term in frequency  # in a fixed order, which decides between equals
        if term not in excluded and len(term) >= _MIN_WORD_CHARS and term[0] != COMPOUND
    ]
    value = {
        term: frequency[term] * -math.log(share)
        for term in nlargest(_MAX_CANDIDATES, candidates, key=frequency.__getitem__)
        if 0 < (share := share_of(term)) < _MAX_SHARE
    }
    best = nlargest(_MAX_WORDS, value, key=value.__getitem__)
    return {term: _WEIGHT * value[term] / value[best[0]] for term in best}
