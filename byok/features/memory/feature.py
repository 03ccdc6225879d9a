"""Stores the editor's conversations while it is on, and shows that it does.

While it is off, it opens and writes nothing: conversations that were stored before stay
until `byok memory forget` deletes them.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from byok.core.chat import Json
from byok.core.code_query import RetrievalRequest
from byok.core.record import RequestRecord
from byok.features.base import PASS, Asking, Feature, Site, Supplies, Verdict
from byok.features.settings import MemorySettings
from byok.features.status import StatusLine

if TYPE_CHECKING:
    from byok.features.memory.keeper import MemoryKeeper
    from byok.features.memory.turns import TurnReader


class ConversationMemory(Feature):
    """Reads the editor's chats as they pass; those of other clients are not stored."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._on = False
        self._keeper: MemoryKeeper | None = None
        self._readers: dict[str, TurnReader] = {}  # by request

    @property
    def recalls(self) -> bool:
        """Whether it is on."""
        return self._on

    def configure(self, supplies: Supplies, /) -> None:
        """Start or stop storing conversations by the settings."""
        settings = supplies.settings.section(MemorySettings)
        self._on = settings.on
        if self._on:
            self._open().begin(settings.days)
        elif self._keeper is not None:
            self._readers.clear()
            self._keeper.pause()

    async def admit(self, asking: Asking, /) -> Verdict:
        """Attach a reader to the answer of a chat that the user sees."""
        if not self._on or asking.chat is None or not asking.shows_notices:
            return PASS
        from byok.features.memory.turns import Turn, TurnReader

        record = asking.record
        turn = Turn(
            record.conversation or record.request_id,
            record.folders,
            self._site.clock(),
            asking.chat.question,
        )
        reader = self._readers[record.request_id] = TurnReader(turn)
        record.listener = reader.read
        return PASS

    def request_finished(self, record: RequestRecord, /) -> None:
        """Store the turn that was read."""
        reader = self._readers.pop(record.request_id, None) if self._readers else None
        if reader is not None and self._keeper is not None:
            self._keeper.store(reader)

    async def recall(self, request: RetrievalRequest, /) -> str:
        """Return passages of earlier conversations about a question."""
        keeper = self._open()
        return await asyncio.wrap_future(keeper.run(partial(keeper.recall, request)))

    async def answer(self, body: Json, /) -> Json:
        """Delete what the body names, and list the rest; also while it is off.

        Raises:
            BadRequest: 422, the body cannot be used.
        """
        keeper = self._open()
        self._drop_readers(body.get("forget"))
        try:
            reply = await asyncio.wrap_future(keeper.run(partial(keeper.answer, body)))
        finally:
            if not self._on:
                keeper.pause()
        return {"on": self._on, **reply}

    async def status(self) -> Sequence[StatusLine] | None:
        """Return how much is stored, or while it is off, whether a file remains."""
        keeper = self._keeper
        if not self._on or keeper is None:
            if not self._site.paths.memory.exists():
                return None
            text = "off; what was kept before is still there: byok memory forget --all"
            return (StatusLine(text, "memory.left"),)
        from byok.features.memory.turns import day_of

        size = await asyncio.wrap_future(keeper.run(keeper.measure))
        return (_describe(size.conversations, day_of(size.since)),)

    def close(self) -> None:
        """Write pending turns. Blocks for seconds."""
        if self._keeper is not None:
            self._keeper.close()

    def _drop_readers(self, forget: object) -> None:
        """Drop the readers of answers in progress that must be forgotten, too."""
        name = forget.get("conversation") if isinstance(forget, dict) else None
        hide = self._site.redactor
        self._readers = {
            request: reader
            for request, reader in self._readers.items()
            if forget != "all"
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
    one, many = "1 conversation", f"{conversations:,} conversations"
    text = f"on: {one if conversations == 1 else many} kept, since {since}"
    values: dict[str, float | str] = {"count": conversations, "since": since}
    return StatusLine(text, "memory.on", values)
