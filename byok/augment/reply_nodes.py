"""The nodes of one answer: numbered, and in the order of the blocks they stand for."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from byok.augment.nodes import ResponseNode
from byok.chat import Json


@dataclass(frozen=True, slots=True)
class NodeDraft:
    """A node without its number, which is given when it is written."""

    kind: ResponseNode
    content: str = ""
    payload: Json = field(default_factory=dict)


class NodeWriter:
    """Writes nodes at once, or at the end where a call before them is not whole yet.

    Clients keep the nodes of an answer in their order, so what follows a call waits for
    it. Text that is shown while it comes does not wait: it is no node.
    """

    def __init__(self) -> None:
        self._written = 0
        self._held: list[list[NodeDraft]] = []  # empty as long as nothing waits
        self._places: dict[str, list[NodeDraft]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no node, and none is held."""
        return not self._written and not any(self._held)

    def write(self, *drafts: NodeDraft) -> Iterable[Json]:
        """Write nodes, or hold them where a call before them is open."""
        if self._held:
            self._held.append(list(drafts))
            return ()
        return [self._number(draft) for draft in drafts]

    def reserve(self, call_id: str) -> None:
        """Keep a place for the nodes of a call; all that follows waits."""
        self._held.append(self._places.setdefault(call_id, []))

    def write_call(self, call_id: str, *drafts: NodeDraft) -> Iterable[Json]:
        """Write the nodes of a call, in its place if it has one."""
        place = self._places.pop(call_id, None)
        if place is None:
            return self.write(*drafts)
        place += drafts
        return ()

    def release(self) -> Iterator[Json]:
        """Write everything that waits; no call comes any more."""
        held, self._held = self._held, []
        for drafts in held:
            yield from map(self._number, drafts)

    def _number(self, draft: NodeDraft) -> dict[str, Any]:
        self._written += 1
        return {
            "id": self._written,
            "type": draft.kind,
            "content": draft.content,
            **draft.payload,
        }
