"""Score files by the commit history: messages that match, and files changed together.

Both were measured (docs/RETRIEVAL.md): the messages of the commits that touched a file
describe it, and files that change in the same commits belong together.
"""

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from byok.index.parse.tokens import terms
from byok.index.types import CommitHistory
from byok.retrieval.query import STOP_WORDS, TASK_WORDS

# BM25 over messages. A term counts 1/sqrt(number of files in the commit).
_K1 = 4.0
_B = 0.5
_COCHANGE = 0.1
# Of a file that changes often, only the newest commits are used.
_MOST_COMMITS = 200
_MOST_KEPT = 500  # files whose companions are kept: the same ones are found often
# Files changed with one, their shares, and the sum of these.
_Companions: TypeAlias = "tuple[array[int], array[float], float]"


class HistorySignals:
    """An immutable index of a commit history, for the files of one view.

    3,000 commits take about a quarter of a second to read and a few MB to keep.
    """

    __slots__ = (
        "_commits",
        "_kept",
        "_lengths",
        "_numbers",
        "_of_file",
        "_paths",
        "_postings",
        "_size",
        "_weights",
    )

    def __init__(self, history: CommitHistory, paths: Iterable[str]) -> None:
        view = frozenset(paths)
        self._size = len(view)
        self._numbers: dict[str, int] = {}
        self._commits: list[tuple[int, ...]] = []
        self._weights = array("d")
        self._postings: dict[str, array[int]] = {}
        lengths: list[float] = []
        of_file: list[list[int]] = []
        for commit in history.commits:
            kept = [path for path in commit.files if path in view]
            if not kept or not commit.telling:
                continue
            files = tuple(self._number_of(path, lengths, of_file) for path in kept)
            weight = 1 / math.sqrt(len(files))
            said = self._index_message(commit.message, len(self._commits))
            for file in files:
                lengths[file] += weight * said
                of_file[file].append(len(self._commits))
            self._commits.append(files)
            self._weights.append(weight)
        self._kept: dict[int, _Companions] = {}
        self._paths = list(self._numbers)
        self._of_file = [array("I", numbers) for numbers in of_file]
        average = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._lengths = array(
            "d", [1 - _B + _B * length / average for length in lengths]
        )

    def _number_of(
        self, path: str, lengths: list[float], of_file: list[list[int]]
    ) -> int:
        number = self._numbers.setdefault(path, len(self._numbers))
        if number == len(lengths):
            lengths.append(0.0)
            of_file.append([])
        return number

    def _index_message(self, message: str, commit: int) -> int:
        """Index the terms of a message; return how many there are."""
        said = set(terms(message)) - STOP_WORDS - TASK_WORDS
        for term in said:
            self._postings.setdefault(term, array("I")).append(commit)
        return len(said)

    def text_scores(self, query: Mapping[str, float]) -> dict[str, float]:
        """Return each file's BM25 score for the messages of its commits."""
        scores: dict[int, float] = defaultdict(float)
        for term, weight in query.items():
            counts: dict[int, float] = defaultdict(float)
            for commit in self._postings.get(term, ()):
                share = self._weights[commit]
                for file in self._commits[commit]:
                    counts[file] += share
            factor = weight * self._rarity(len(counts)) * (_K1 + 1)
            for file, count in counts.items():
                scores[file] += factor * count / (count + _K1 * self._lengths[file])
        return {self._paths[file]: score for file, score in scores.items()}

    def _rarity(self, files: int) -> float:
        return math.log(1 + (self._size - files + 0.5) / (files + 0.5))

    def cochange(self, top: Mapping[str, float]) -> dict[str, float]:
        """Return what files gain from scored files that were changed with them.

        Each scored file passes on a tenth of its score, split among the files of its
        commits.
        """
        gains: dict[int, float] = defaultdict(float)
        for path, score in top.items():
            file = self._numbers.get(path)
            if file is None:
                continue
            others, shares, total = self._companions(file)
            for other, share in zip(others, shares, strict=True):
                gains[other] += _COCHANGE * score * share / total
        return {self._paths[file]: gain for file, gain in gains.items()}

    def _companions(self, file: int) -> _Companions:
        kept = self._kept.get(file)
        if kept is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            kept = self._kept[file] = self._count_companions(file)
        return kept

    def _count_companions(self, file: int) -> _Companions:
        found: dict[int, float] = defaultdict(float)
        for commit in self._of_file[file][:_MOST_COMMITS]:
            files = self._commits[commit]
            for other in files:
                if other != file:
                    found[other] += 1 / (len(files) - 1)
        shares = array("d", found.values())
        return array("I", found), shares, sum(shares)


class JoinedSignals:
    """The history signals of several workspaces, each with a prefix of its paths."""

    def __init__(self, parts: Mapping[str, HistorySignals]) -> None:
        """Take signals by prefix: "" for a single workspace, else `label/`."""
        self._parts = parts

    def text_scores(self, query: Mapping[str, float]) -> dict[str, float]:
        """Return `HistorySignals.text_scores` of all workspaces, by prefixed path."""
        return {
            prefix + path: score
            for prefix, signals in self._parts.items()
            for path, score in signals.text_scores(query).items()
        }

    def cochange(self, top: Mapping[str, float]) -> dict[str, float]:
        """Return `HistorySignals.cochange` of all workspaces, by prefixed path."""
        found = {}
        for prefix, signals in self._parts.items():
            own = {
                path.removeprefix(prefix): score
                for path, score in top.items()
                if path.startswith(prefix)
            }
            for path, gain in signals.cochange(own).items():
                found[prefix + path] = gain
        return found
