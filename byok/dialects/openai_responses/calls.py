"""Function calls of a streamed response: which call each event belongs to."""

from collections.abc import Iterable, Iterator, Mapping

from byok.chat import Json
from byok.dialects.openai_responses.items import read_text
from byok.events import ToolCallDelta

_MOST_CHARS = 2**20  # pieces that wait; a longer call is handed on as it comes


class Calls:
    """The calls of one answer, numbered in their order.

    Events name their call by `output_index`, by `item_id`, or not at all: then they
    belong to the last one. `tool_names` are the user's names, by the names sent.

    A call is passed on as a whole anyway, so the pieces of its arguments wait for the
    event that repeats them in full: that one is right where a piece was lost.
    """

    def __init__(self, tool_names: Mapping[str, str]) -> None:
        self.tool_names = tool_names
        self._places: dict[object, int] = {}
        self._count = 0
        self._written: set[int] = set()  # calls whose arguments were handed on
        self._pieces: dict[int, list[str]] = {}  # of the other calls
        self._size = 0

    @property
    def any(self) -> bool:
        """Whether there is a call."""
        return self._count > 0

    def begin(self, index: object, item: Json) -> ToolCallDelta:
        """Begin a call; its arguments follow."""
        number = self._count
        self._count += 1
        keys = (index, item.get("id"), item.get("call_id"))
        self._places.update({key: number for key in keys if _is_key(key)})
        name = read_text(item, "name")
        call_id = read_text(item, "call_id") or read_text(item, "id")
        return ToolCallDelta(number, call_id, self.tool_names.get(name, name))

    def add(self, event: Json) -> Iterator[ToolCallDelta]:
        """Read a piece of arguments; without a call that it belongs to it is none."""
        number = self._find(event.get("output_index"), event.get("item_id"))
        delta = read_text(event, "delta")
        if not delta or number is None or number in self._written:
            return
        self._pieces.setdefault(number, []).append(delta)
        self._size += len(delta)
        if self._size > _MOST_CHARS:
            yield from self.rest()

    def rest(self) -> Iterator[ToolCallDelta]:
        """Hand on the pieces that no event has repeated, when the answer ends."""
        waiting, self._pieces, self._size = self._pieces, {}, 0
        for number, pieces in waiting.items():
            yield ToolCallDelta(number, arguments="".join(pieces))

    def complete(self, event: Json) -> Iterator[ToolCallDelta]:
        """Read all arguments of a call."""
        number = self._find(event.get("output_index"), event.get("item_id"))
        yield from self._write(number, read_text(event, "arguments"))

    def end(self, index: object, item: Json) -> Iterator[ToolCallDelta]:
        """Read a complete call, as far as it did not come."""
        keys = (index, item.get("id"), item.get("call_id"))
        if not any(key in self._places for key in keys if _is_key(key)):
            yield self.begin(index, item)
            yield from self._write(self._count - 1, read_text(item, "arguments"))
        else:
            yield from self._write(self._find(*keys), read_text(item, "arguments"))

    def end_all(self, items: Iterable[tuple[int, Json]]) -> Iterator[ToolCallDelta]:
        """Read the calls of a whole response, with their places.

        Servers that give their items new ids in each event keep the order at least.
        """
        found = [*items]
        if len(found) == self._count:
            for number, (_, item) in enumerate(found):
                yield from self._write(number, read_text(item, "arguments"))
            return
        for place, item in found:
            yield from self.end(place, item)

    def _write(self, number: int | None, arguments: str) -> Iterator[ToolCallDelta]:
        if number is not None and arguments and number not in self._written:
            self._written.add(number)
            pieces = self._pieces.pop(number, [])
            self._size -= sum(map(len, pieces))
            yield ToolCallDelta(number, arguments=arguments)

    def _find(self, *keys: object) -> int | None:
        for key in keys:
            if _is_key(key) and key in self._places:
                return self._places[key]
        return self._count - 1 if self._count else None


def _is_key(key: object) -> bool:
    return isinstance(key, int) or (isinstance(key, str) and key != "")
