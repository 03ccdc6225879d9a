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
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from byok.errors import ByokError, UpstreamGarbled
from byok.prompts.prompt_set import PromptSet
from byok.prompts.shipped import shipped_prompts
from byok.retrieval.model_aids import AskModel, ReadChunks
from byok.retrieval.model_rest import ModelRest
from byok.retrieval.query import Query
from byok.retrieval.rank import RankedFile
from byok.retrieval.rerank.listing import (
    LONGEST_ANSWER,
    MOST,
    MOST_NUMBERS,
    read_numbers,
    shuffle,
    write_list,
)
from byok.retrieval.rerank.order import Agreement, merge

_SECONDS = 2.0
_MOST_KEPT = 256


class ModelRerank:
    """Lets a model change the order of files; keeps what it said of the same list."""

    def __init__(
        self,
        ask: AskModel,
        prompts: PromptSet | None = None,
        *,
        seconds: float = _SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        values = {"most": str(MOST_NUMBERS)}
        told = (prompts or shipped_prompts()).render("rerank", values=values)
        self._ask = ask
        self._instruction = told.text
        self._seconds = seconds
        self._rest = ModelRest("files keep their order", clock)
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
        if is_clear or not self._rest.is_over:
            return [*files]
        order = shuffle(question, listed)
        shown = [listed[place] for place in order]
        try:
            text = await asyncio.to_thread(write_list, question, query, shown, read)
            chosen = [order[n] for n in await self._choose(text, order)]
        except ByokError as error:
            self._rest.note_failure(error)
            return [*files]
        return merge(files, chosen) if self._agreement.is_shown else [*files]

    async def _choose(self, text: str, order: Sequence[int]) -> list[int]:
        """Return the places in the list that the model names."""
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest()
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept
        answer = await self._ask(
            self._instruction,
            text,
            seconds=self._seconds,
            longest=LONGEST_ANSWER,
        )
        if not (found := read_numbers(answer, len(order))):
            raise UpstreamGarbled("the model named no file of the list.")
        self._rest.note_answer()
        self._kept[key] = found
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        self._agreement.add([order[n] for n in found], len(order))
        if self._agreement.is_hopeless:
            self._agreement.forget()
            self._rest.begin("its choices are no better than chance.")
        return found
