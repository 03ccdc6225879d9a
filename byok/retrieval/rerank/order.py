"""How a model's choice changes the order of files, and when it may.

A choice is merged with the ranking instead of replacing it: a file at place n is worth
1/(n+1), counted from 1, and the model's choices gain 0.7/(n+1) each by their places
among themselves. So the first choice comes to the top from the fifth place or above,
and from further below to the second. By this a good judge keeps nine tenths of what
it could gain, and a poor one does little harm (docs/RETRIEVAL.md).

A model without any judgement would still do harm, and it cannot be asked whether it has
some. But the ranking is often right, and a model that judges agrees with it more often
than chance does. So choices count only once the last ones have shown that.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from byok.retrieval.rank import RankedFile

_WEIGHT = 0.7
_LEVEL = 2.0  # differences between the first places are smaller the higher it is
_COMPARED, _TOP = 3, 5  # the first choices, and the places where they should be
_FEWEST, _MOST = 4, 32
_SURE = 3.0  # standard deviations above chance
_HOPELESS = 16


class _Trial(NamedTuple):
    """How many of the first choices were high, above what chance gives."""

    surplus: float
    variance: float


class Agreement:
    """Tells from a model's last choices whether it judges at all."""

    def __init__(self) -> None:
        self._trials: deque[_Trial] = deque(maxlen=_MOST)

    def add(self, places: Sequence[int], count: int) -> None:
        """Note the places, from 0, that a model chose among `count` ranked files.

        They agree with the ranking if the first three are among its first five. By
        chance that is a draw without returning (hypergeometric).
        """
        chosen = places[:_COMPARED]
        if count < 2 or not chosen:
            return
        drawn, share = len(chosen), min(_TOP, count) / count
        high = sum(place < _TOP for place in chosen)
        spread = drawn * share * (1 - share) * (count - drawn) / (count - 1)
        self._trials.append(_Trial(high - drawn * share, spread))

    @property
    def is_shown(self) -> bool:
        """Whether the choices agree with the ranking more than by chance."""
        variance = sum(trial.variance for trial in self._trials)
        if len(self._trials) < _FEWEST or not variance:
            return False
        surplus = sum(trial.surplus for trial in self._trials)
        return surplus >= _SURE * math.sqrt(variance)

    @property
    def is_hopeless(self) -> bool:
        """Whether many choices were made, and no judgement was seen in them."""
        return len(self._trials) >= _HOPELESS and not self.is_shown

    def forget(self) -> None:
        """Begin anew."""
        self._trials.clear()


def merge(files: Sequence[RankedFile], places: Sequence[int]) -> list[RankedFile]:
    """Return the files in an order that the model's choices have changed.

    `places` are those of its choices among the files, from 0, the best one first. The
    others keep their order. The scores stay where they are: the first file gets the
    highest one, and so on.
    """
    worth = [1 / (_LEVEL + place) for place in range(len(files))]
    for turn, place in enumerate(places):
        worth[place] += _WEIGHT / (_LEVEL + turn)
    order = sorted(range(len(files)), key=lambda place: (-worth[place], place))
    return [
        files[old]
        if old == new
        else replace(files[old], score=files[new].score, place=old + 1)
        for new, old in enumerate(order)
    ]
