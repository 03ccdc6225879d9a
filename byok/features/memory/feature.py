"""Remembers the editor's conversations while it is on, and says so.

Off, it opens and writes nothing: what was remembered before stays until it is forgotten
by `byok memory forget`.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from byok.core.chat import Json
from byok.core.code_query import RetrievalRequest
from byok.core.record import RequestRecord
from byok.features.base import PASS, Asking, Feature, Site, Supplies, Verdict
from byok.features.memory.settings import MemorySettings
from byok.features.status import StatusLine

if TYPE_CHECKING:
    from byok.features.memory.keeper import MemoryKeeper
    from byok.features.memory.turns import TurnReader


class ConversationMemory(Feature):
    """Reads chats as they pass; others than the editor's are not remembered."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._on = False
        self._keeper: MemoryKeeper | None = None
        self._reading: dict[str, TurnReader] = {}  # by request

    @property
    def recalls(self) -> bool:
        """Whether it is on."""
        return self._on

    def configure(self, supplies: Supplies, /) -> None:
        """Remember conversations or not, for so many days, from now on."""
        settings = supplies.settings.section(MemorySettings)
        self._on = settings.on
        if self._on:
            self._open().begin(settings.days)
        elif self._keeper is not None:
            self._reading.clear()
            self._keeper.rest()

    async def admit(self, asking: Asking, /) -> Verdict:
        """Read the answer of a chat that the user sees."""
        if not self._on or asking.chat is None or not asking.shows_notices:
            return PASS
        from byok.features.memory.turns import Turn, TurnReader

        record = asking.record
        begun = Turn(
            record.conversation or record.request_id,
            record.folders,
            self._site.clock(),
            asking.chat.question,
        )
        reader = self._reading[record.request_id] = TurnReader(begun)
        record.listener = reader.read
        return PASS

    def request_finished(self, record: RequestRecord, /) -> None:
        """Keep what was read."""
        reader = self._reading.pop(record.request_id, None) if self._reading else None
        if reader is not None and self._keeper is not None:
            self._keeper.keep(reader)

    async def recall(self, asked: RetrievalRequest, /) -> str:
        """Return what earlier conversations say to a question."""
        keeper = self._open()
        return await asyncio.wrap_future(keeper.run(partial(keeper.recall, asked)))

    async def answer(self, body: Json, /) -> Json:
        """Tell what is kept, and forget what the body names, also while it is off.

        Raises:
            BadRequest: 422, the body cannot be used.
        """
        keeper = self._open()
        self._drop(body.get("forget"))
        try:
            told = await asyncio.wrap_future(keeper.run(partial(keeper.answer, body)))
        finally:
            if not self._on:
                keeper.rest()
        return {"on": self._on, **told}

    async def status(self) -> Sequence[StatusLine] | None:
        """Tell how much is kept while it is on, and if something is left after that."""
        keeper = self._keeper
        if not self._on or keeper is None:
            if not self._site.paths.memory.exists():
                return None
            text = "off; what was kept before is still there: byok memory forget --all"
            return (StatusLine(text, "memory.left"),)
        from byok.features.memory.store import day_of

        size = await asyncio.wrap_future(keeper.run(keeper.measure))
        return (_describe(size.conversations, day_of(size.since)),)

    def close(self) -> None:
        """Write what is left. Blocks for seconds."""
        if self._keeper is not None:
            self._keeper.close()

    def _drop(self, forgotten: object) -> None:
        """Keep nothing of answers in progress that belong to what is forgotten."""
        name = forgotten.get("conversation") if isinstance(forgotten, dict) else None
        hide = self._site.redactor
        self._reading = {
            request: reader
            for request, reader in self._reading.items()
            if forgotten != "all"
            and not (isinstance(name, str) and reader.is_of(name, hide))
        }

    def _open(self) -> "MemoryKeeper":
        if self._keeper is None:
            from byok.features.memory.keeper import MemoryKeeper

            site = self._site
            self._keeper = MemoryKeeper(site.paths.memory, site.redactor, site.clock)
        return self._keeper


def _describe(conversations: int, since: str) -> StatusLine:
    if not conversations:
        return StatusLine("on: nothing is kept yet", "memory.empty")
    one, more = "1 conversation", f"{conversations:,} conversations"
    text = f"on: {one if conversations == 1 else more} kept, since {since}"
    values: dict[str, float | str] = {"count": conversations, "since": since}
    return StatusLine(text, "memory.on", values)
