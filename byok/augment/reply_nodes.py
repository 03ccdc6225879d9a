"""Number the nodes of an answer, and keep them in the order of its blocks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from byok.augment.nodes import ResponseNode
from byok.chat import Json


@dataclass(frozen=True, slots=True)
class NodeDraft:
    """A node that has no number yet."""

    kind: ResponseNode
    content: str = ""
    payload: Json = field(default_factory=dict)


class NodeWriter:
    """Writes nodes at once, or holds them if an earlier call is not complete yet.

    Clients store the nodes of an answer in their order, so the nodes after a call wait
    for it. The text deltas do not wait: they are not nodes.
    """

    def __init__(self) -> None:
        self._written = 0
        self._held: list[list[NodeDraft]] = []  # empty as long as nothing waits
        self._places: dict[str, list[NodeDraft]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no node was written and none is held."""
        return not self._written and not any(self._held)

    def write(self, *drafts: NodeDraft) -> Iterable[Json]:
        """Write nodes, or hold them if an earlier call is open."""
        if self._held:
            self._held.append(list(drafts))
            return ()
        return [self._number(draft) for draft in drafts]

    def reserve(self, call_id: str) -> None:
        """Reserve the place of a call; all later nodes are held."""
        self._held.append(self._places.setdefault(call_id, []))

    def write_call(self, call_id: str, *drafts: NodeDraft) -> Iterable[Json]:
        """Write the nodes of a call, in its reserved place if it has one."""
        place = self._places.pop(call_id, None)
        if place is None:
            return self.write(*drafts)
        place += drafts
        return ()

    def release(self) -> Iterator[Json]:
        """Write everything that is held; no more calls will come."""
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
