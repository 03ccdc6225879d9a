"""The reasoning of a streamed response: its text, and what must come back of it."""

from typing import Any, TypeAlias

from byok.chat import Json, Origin, ProviderData
from byok.dialects.openai_responses.items import reasoning_data
from byok.events import ThinkingDelta
from byok.wire.surrogates import SurrogateBuffer

Key: TypeAlias = int | str
Part: TypeAlias = tuple[str, Any]


class ReasoningStream:
    """Collects the reasoning of one answer, whose parts come one after the other."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._text = SurrogateBuffer()
        self._part: tuple[Key, Part] | None = None
        self._kept: dict[str, Any] = {}

    def add(self, key: Key, part: Part, delta: str) -> str:
        """Return the text to show of a delta; a new part begins on a new line.

        `part` is the kind of text and its number in the item `key`. Of the reasoning
        and its summary in one item, the one that comes first is shown.
        """
        before, self._part = self._part, (key, part)
        if before == self._part:
            return self._text.feed(delta)
        if before and before[0] == key and before[1][0] != part[0]:
            self._part = before
            return ""
        return self._text.feed(f"\n{delta}" if before else delta)

    def keep(self, item: Json) -> None:
        """Keep what must come back of a complete item, until the next item begins."""
        self._kept = reasoning_data(item)

    def end(self, phase: str = "") -> list[ThinkingDelta]:
        """End the reasoning before the next item; give what must come back.

        The phase of a message comes back with the message that follows its data.
        """
        data: dict[str, Any] = {}
        if self._kept:
            data["item"], self._kept = self._kept, {}
        if phase:
            data["phase"] = phase
        if not data:
            return []
        return [ThinkingDelta(self._text.flush(), ProviderData(self._origin, data))]

    def rest(self) -> list[ThinkingDelta]:
        """Give what was held back: half an emoji."""
        rest = self._text.flush()
        return [ThinkingDelta(rest)] if rest else []
