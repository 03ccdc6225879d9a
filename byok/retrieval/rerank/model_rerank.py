"""Let a model help to put the best files in order, between ranking and packing.

The model is shown a short list (`listing.py`) and names a few of it by number; how
they change the order is in `order.py`. It has two seconds. Whatever goes wrong,
the order stays, and the model is left alone for a while, and longer each time it fails
again, so that searches do not wait in vain. A question that is one identifier is left
to the ranking, which puts the definition first.

`pack` reads from the scores how much of each file to show. So files that move get the
score of their new place, and `RankedFile.place` tells where they were.
"""

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from byok.errors import ByokError, ConfigError, KeyMissing, UpstreamGarbled
from byok.retrieval.model_aids import AskModel, ReadChunks
from byok.retrieval.query import Query
from byok.retrieval.rank import RankedFile
from byok.retrieval.rerank.listing import (
    INSTRUCTION,
    LONGEST_ANSWER,
    MOST,
    MOST_NUMBERS,
    read_numbers,
    shuffle,
    write_list,
)
from byok.retrieval.rerank.order import Agreement, merge

_log = logging.getLogger(__name__)
_SECONDS = 2.0
_PAUSE, _LONG_PAUSE = 60.0, 3600.0
_MOST_KEPT = 256


class ModelRerank:
    """Lets a model change the order of files; keeps what it said of the same list."""

    def __init__(
        self,
        ask: AskModel,
        *,
        seconds: float = _SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._seconds = seconds
        self._clock = clock
        self._asked_again = float("-inf")  # when
        self._failures = 0  # one after the other
        self._refused = False  # and told
        self._agreement = Agreement()
        self._kept: OrderedDict[bytes, list[int]] = OrderedDict()

    async def __call__(
        self,
        question: str,
        query: Query,
        files: Sequence[RankedFile],
        read: ReadChunks,
    ) -> list[RankedFile]:
        """Return the files in another order, or as they are; see `Rerank`."""
        listed = files[:MOST]
        is_clear = len(listed) < 2 or query.identifier
        if is_clear or self._clock() < self._asked_again:
            return [*files]
        order = shuffle(question, listed)
        shown = [listed[place] for place in order]
        try:
            text = await asyncio.to_thread(write_list, question, query, shown, read)
            chosen = [order[n] for n in await self._choose(text, order)]
        except ByokError as error:
            self._note_failure(error)
            return [*files]
        return merge(files, chosen) if self._agreement.is_shown else [*files]

    async def _choose(self, text: str, order: Sequence[int]) -> list[int]:
        """Return the places in the list that the model names."""
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest()
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept
        answer = await self._ask(
            INSTRUCTION.format(most=MOST_NUMBERS),
            text,
            seconds=self._seconds,
            longest=LONGEST_ANSWER,
        )
        if not (found := read_numbers(answer, len(order))):
            raise UpstreamGarbled("the model named no file of the list.")
        self._failures = 0
        self._kept[key] = found
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        self._agreement.add([order[n] for n in found], len(order))
        if self._agreement.is_hopeless:
            self._agreement.forget()
            self._rest(_LONG_PAUSE, "its choices are no better than chance.")
        return found

    def _note_failure(self, error: ByokError) -> None:
        """Rest after a failure, but not if the model may only not be asked here.

        Its upstream may be one that the chats of another window go to.
        """
        if isinstance(error, ConfigError) and not isinstance(error, KeyMissing):
            if not self._refused:
                _log.warning("files keep their order: %s", error.log_text)
            self._refused = True
            return
        self._failures += 1
        seconds = min(_PAUSE * 2 ** min(self._failures - 1, 9), _LONG_PAUSE)
        self._rest(seconds, error.log_text)

    def _rest(self, seconds: float, reason: str) -> None:
        """Ask nothing for a while."""
        self._asked_again = self._clock() + seconds
        _log.warning(
            "files keep their order; no model is asked for another for %d s: %s",
            seconds,
            reason,
        )
