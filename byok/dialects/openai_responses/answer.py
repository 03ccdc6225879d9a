"""Responses: decoding the answer, of OpenAI and of compatible servers.

One reader decodes streamed events and whole answers. Some servers leave out deltas,
others the items, others everything but the last event, and gateways lose single deltas.
So what an event repeats completes what its deltas have brought: arguments always, text
where the deltas are its beginning (what was shown cannot be taken back).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

from byok.core.chat import NO_ORIGIN, Json, Origin, ProviderData
from byok.core.errors import UpstreamRefused
from byok.core.events import (
    Citation,
    FinishReason,
    Notice,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from byok.core.wire.json_body import SurrogateBuffer
from byok.core.wire.json_fields import read_object, read_text
from byok.dialects.answer_reader import EventReader, read_finish
from byok.dialects.error_bodies import refusal_of
from byok.dialects.openai_chat.chunks import is_error, read_usage
from byok.dialects.openai_responses.request import (
    citations,
    foreign_tool,
    message_text,
    reasoning_data,
    reasoning_text,
)
from byok.dialects.presets import OPENAI_RESPONSES

# Function calls of a streamed response: which call each event belongs to.


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


# How a response ends: the reason, a failure, or an answer in another protocol.


_FAILED = frozenset({"failed", "cancelled"})


def is_failure(response: Json) -> bool:
    """Tell whether a response has failed, whatever its event is called."""
    return read_text(response, "status") in _FAILED or bool(response.get("error"))


def failure_of(event: Json) -> UpstreamRefused:
    """Decode a failure: the error is in the response, in the event, or its fields."""
    error = read_object(event, "response").get("error") or event.get("error")
    if not error:
        error = {k: event[k] for k in ("code", "message") if event.get(k)}
    return refusal_of({"error": error} if error else {"message": "it failed."})


def finish_reason(event: Json, *, has_calls: bool) -> FinishReason:
    """Return why the model stopped, from the last event."""
    response = read_object(event, "response")
    why = read_object(response, "incomplete_details").get("reason")
    is_cut = "incomplete" in (
        response.get("status"),
        read_text(event, "type").removeprefix("response."),
    )
    if why or is_cut:
        return read_finish(str(why), FinishReason.LENGTH)
    return FinishReason.TOOL_CALLS if has_calls else FinishReason.STOP


# The reasoning of a streamed response: its text, and what must come back of it.


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


_NONE = object()


class ResponsesAnswer(EventReader):
    """Stage[ServerSentEvent, StreamEvent]: decodes the answer of a chat."""

    dialect = OPENAI_RESPONSES

    def __init__(
        self, tool_names: Mapping[str, str], origin: Origin = NO_ORIGIN
    ) -> None:
        super().__init__(tool_names, origin)
        self._calls = Calls(tool_names)
        self._reasoning = ReasoningStream(origin)
        self._texts: dict[int | str, list[str]] = {}  # of messages, by their items
        self._said: list[str] = []  # the text of the item that comes now
        self._told: set[int | str] = set()  # items of which deltas came
        self._telling: object = _NONE  # the place of the last of them
        self._seen: set[int | str] = set()  # items that came
        self._ended: set[int | str] = set()  # items that came as a whole
        self._has_foreign = False  # a tool was called that byok cannot run

    def _read_document(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if handle := self._HANDLERS.get(kind) if isinstance(kind, str) else None:
            handle(self, event)
        elif isinstance(kind, str) and kind.startswith("response."):
            pass  # what it tells comes again
        elif isinstance(event.get("output"), list):  # an answer in one piece
            self._read_end({"response": event})
        elif event.get("error") or is_error(event):
            raise refusal_of(event)

    def _add_text(self, event: Json) -> None:
        delta = event.get("delta")
        if isinstance(delta, str) and (text := self._text.feed(delta)):
            self._spoke = True
            if (index := event.get("output_index")) != self._telling:
                self._begin_text(_key(index, "message"))
                self._telling = index
            self._said.append(delta)
            if self._think is None:  # nearly all events are just that
                self._out.append(TextDelta(text))
            else:
                self._give_text(text)

    def _begin_text(self, key: int | str) -> None:
        """Begin or go on with a message; a blank line parts it from the last one."""
        self._told.add(key)
        if key not in self._texts and self._said and not self._said[-1].endswith("\n"):
            self._give_text("\n\n")
        self._said = self._texts.setdefault(key, [])

    def _complete_text(self, key: int | str, item: Json) -> None:
        """Give the end of a message, if its last deltas were lost."""
        said, whole = "".join(self._texts.get(key, ())), message_text(item)
        if len(whole) > len(said) and whole.startswith(said):
            self._add_text({"delta": whole[len(said) :], "output_index": key})

    def _add_summary(self, event: Json) -> None:
        self._add_thought(event, ("summary", event.get("summary_index")))

    def _add_reasoning(self, event: Json) -> None:
        self._add_thought(event, ("content", event.get("content_index")))

    def _add_thought(self, event: Json, part: tuple[str, Any]) -> None:
        delta = event.get("delta")
        if not isinstance(delta, str) or not delta:
            return
        key = _key(event.get("output_index"), "reasoning")
        self._spoke = True
        self._told.add(key)
        if thought := self._reasoning.add(key, part, delta):
            self._out.append(ThinkingDelta(thought))

    def _begin_item(self, event: Json) -> None:
        item = event.get("item")
        if isinstance(item, dict):
            self._note_item(event.get("output_index"), item)
            if item.get("type") == "function_call":
                self._before_call()
                self._out.append(self._calls.begin(event.get("output_index"), item))

    def _end_item(self, event: Json) -> None:
        item = event.get("item")
        if isinstance(item, dict):
            self._finish_item(event.get("output_index"), item)

    def _note_item(self, index: object, item: Json) -> int | str:
        kind = read_text(item, "type")
        key = _key(index, kind)
        if key not in self._seen:
            self._seen.add(key)
            self._end_thinking(read_text(item, "phase") if kind == "message" else "")
        return key

    def _finish_item(self, index: object, item: dict[str, Any]) -> None:
        """Read a complete item, as far as its deltas did not come."""
        key = self._note_item(index, item)
        self._ended.add(key)
        kind = read_text(item, "type")
        if key not in self._told and kind in self._told:
            key = kind  # its deltas came without a place
        is_told, self._telling = key in self._told, _NONE
        match kind:
            case "message":
                self._complete_text(key, item)
                self._cite(item)
            case "reasoning":
                if not is_told:
                    event = {"delta": reasoning_text(item), "output_index": key}
                    self._add_thought(event, ("summary", None))
                self._spoke = True
                self._reasoning.keep(item)
            case "function_call":
                self._before_call()
                self._out.extend(self._calls.end(index, item))
            case _:
                self._finish_other(item)
        if not isinstance(key, int):  # another item of this kind may follow
            self._told.discard(key)
            self._seen.discard(key)
            self._texts.pop(key, None)

    def _before_call(self) -> None:
        self._spoke = True
        if self._think is not None:
            self._out.extend(self._think.end())

    def _finish_other(self, item: dict[str, Any]) -> None:
        """Read a call of a tool that is no function."""
        self._spoke = True
        if read_text(item, "name") in self._calls.tool_names:
            function = {**item, "arguments": read_text(item, "input")}
            self._out.extend(self._calls.end(None, function))
        elif name := foreign_tool(item):
            self._has_foreign = True
            said = f"The model called `{name}`, a tool of its API that byok cannot run."
            self._out.append(Notice(said))

    def _cite(self, item: Json) -> None:
        """Name the sources of a message that its text does not name."""
        if sources := citations(item):
            text = message_text(item)
            self._out += (Citation(*s) for s in sources if s[0] not in text)

    def _add_arguments(self, event: Json) -> None:
        self._spoke = True
        self._out.extend(self._calls.add(event))

    def _end_arguments(self, event: Json) -> None:
        self._out.extend(self._calls.complete(event))

    def _end_thinking(self, phase: str = "") -> None:
        if ended := self._reasoning.end(phase):
            self._flush_text()
            self._out.extend(ended)

    def _flush_text(self) -> None:
        if rest := self._text.flush():
            self._give_text(rest)

    def _fail(self, event: Json) -> None:
        raise failure_of(event)

    def _read_end(self, event: Json) -> None:
        """Read the last event: items that did not come before, usage, the reason."""
        response = read_object(event, "response")
        if is_failure(response):
            raise failure_of(event)
        self._read_output(response.get("output"))
        has_calls = self._calls.any or self._has_foreign
        finish = finish_reason(event, has_calls=has_calls)
        self._give_end(finish, read_usage(response.get("usage")))

    def _read_output(self, output: Any) -> None:
        """Read the items of a whole answer that did not come before."""
        items = output if isinstance(output, list) else []
        whole = [(n, item) for n, item in enumerate(items) if isinstance(item, dict)]
        known = self._told | self._seen
        has_places = any(isinstance(key, int) for key in known)
        if has_places or not self._spoke:
            for place, item in whole:
                if place not in known or (
                    item.get("type") == "message" and place not in self._ended
                ):
                    self._finish_item(place, item)
        elif "message" in self._told:
            texts = [item for _, item in whole if item.get("type") == "message"]
            if len(texts) == 1:
                self._complete_text("message", texts[0])
        if self._calls.any:
            calls = [(n, i) for n, i in whole if i.get("type") == "function_call"]
            self._out.extend(self._calls.end_all(calls))

    def _rest(self) -> None:
        """Give what was held back: the end of reasoning, half an emoji, half a tag."""
        self._out.extend(self._calls.rest())
        self._end_thinking()
        self._out += self._reasoning.rest()
        self._flush_text()
        self._give_held_tag()

    _HANDLERS: ClassVar[Mapping[str, Callable[["ResponsesAnswer", Json], None]]] = {
        "response.output_text.delta": _add_text,
        "response.refusal.delta": _add_text,
        "response.reasoning_summary_text.delta": _add_summary,
        "response.reasoning_text.delta": _add_reasoning,
        "response.output_item.added": _begin_item,
        "response.output_item.done": _end_item,
        "response.function_call_arguments.delta": _add_arguments,
        "response.function_call_arguments.done": _end_arguments,
        "response.completed": _read_end,
        "response.done": _read_end,
        "response.incomplete": _read_end,
        "response.failed": _fail,
        "error": _fail,
    }


def _key(index: object, kind: str) -> int | str:
    """Return what tells items apart: their places, or their kinds without those.

    Some servers give an item another id in each event.
    """
    return index if type(index) is int else kind
