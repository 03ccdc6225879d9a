"""Responses: decoding the answer, of OpenAI and of compatible servers.

One reader decodes streamed events and whole answers. Some servers leave out deltas,
others the items, others everything but the last event, and gateways lose single deltas.
So an event that repeats a whole item completes its deltas: arguments always, text only
if the deltas are its beginning, because text that was shown cannot be withdrawn.
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

_MAX_BUFFERED_CHARS = 2**20  # pieces of arguments; of longer calls they pass at once
_NO_INDEX = object()
# An item, by its index or, without one, by its kind.
Key: TypeAlias = int | str
# A part of an item: the kind of text, and its number.
Part: TypeAlias = tuple[str, Any]


class Calls:
    """The calls of one answer, numbered in their order.

    Events name their call by `output_index`, by `item_id`, or not at all: then they
    belong to the last call. `tool_names` maps the names that were sent to the user's.

    The pieces of a call's arguments are buffered until the event that repeats them in
    full, which is right even if a piece was lost. This delays nothing, because calls
    are passed on to the client as a whole.
    """

    def __init__(self, tool_names: Mapping[str, str]) -> None:
        self.tool_names = tool_names
        self._numbers: dict[object, int] = {}  # of calls, by each of their keys
        self._count = 0
        self._written: set[int] = set()  # calls whose whole arguments were emitted
        self._pieces: dict[int, list[str]] = {}  # of the other calls
        self._size = 0  # characters in `_pieces`

    @property
    def any(self) -> bool:
        """Whether there is a call."""
        return self._count > 0

    def begin(self, index: object, item: Json) -> ToolCallDelta:
        """Begin a call; its arguments follow."""
        number = self._count
        self._count += 1
        keys = (index, item.get("id"), item.get("call_id"))
        self._numbers.update({key: number for key in keys if _is_key(key)})
        name = read_text(item, "name")
        call_id = read_text(item, "call_id") or read_text(item, "id")
        return ToolCallDelta(number, call_id, self.tool_names.get(name, name))

    def add(self, event: Json) -> Iterator[ToolCallDelta]:
        """Buffer a piece of arguments; it is ignored if there is no call yet."""
        number = self._find(event.get("output_index"), event.get("item_id"))
        delta = read_text(event, "delta")
        if not delta or number is None or number in self._written:
            return
        self._pieces.setdefault(number, []).append(delta)
        self._size += len(delta)
        if self._size > _MAX_BUFFERED_CHARS:
            yield from self.flush()

    def flush(self) -> Iterator[ToolCallDelta]:
        """Emit the buffered pieces, which no event has repeated."""
        buffered, self._pieces, self._size = self._pieces, {}, 0
        for number, pieces in buffered.items():
            yield ToolCallDelta(number, arguments="".join(pieces))

    def complete(self, event: Json) -> Iterator[ToolCallDelta]:
        """Read the event with all arguments of a call."""
        number = self._find(event.get("output_index"), event.get("item_id"))
        yield from self._emit_arguments(number, read_text(event, "arguments"))

    def end(self, index: object, item: Json) -> Iterator[ToolCallDelta]:
        """Read a complete call, and emit the parts that have not come yet."""
        keys = (index, item.get("id"), item.get("call_id"))
        if not any(key in self._numbers for key in keys if _is_key(key)):
            yield self.begin(index, item)
            yield from self._emit_arguments(
                self._count - 1, read_text(item, "arguments")
            )
        else:
            yield from self._emit_arguments(
                self._find(*keys), read_text(item, "arguments")
            )

    def end_all(self, items: Iterable[tuple[int, Json]]) -> Iterator[ToolCallDelta]:
        """Read the calls of a whole response, with their indices.

        Servers that give their items new ids in each event keep the order at least.
        """
        calls = [*items]
        if len(calls) == self._count:
            for number, (_, item) in enumerate(calls):
                yield from self._emit_arguments(number, read_text(item, "arguments"))
            return
        for index, item in calls:
            yield from self.end(index, item)

    def _emit_arguments(
        self, number: int | None, arguments: str
    ) -> Iterator[ToolCallDelta]:
        if number is not None and arguments and number not in self._written:
            self._written.add(number)
            pieces = self._pieces.pop(number, [])
            self._size -= sum(map(len, pieces))
            yield ToolCallDelta(number, arguments=arguments)

    def _find(self, *keys: object) -> int | None:
        for key in keys:
            if _is_key(key) and key in self._numbers:
                return self._numbers[key]
        return self._count - 1 if self._count else None


def _is_key(key: object) -> bool:
    return isinstance(key, int) or (isinstance(key, str) and key != "")


def failure_of(event: Json) -> UpstreamRefused:
    """Decode a failure, which is in the response, in the event, or in its fields."""
    error = read_object(event, "response").get("error") or event.get("error")
    if not error:
        error = {k: event[k] for k in ("code", "message") if event.get(k)}
    return refusal_of({"error": error} if error else {"message": "it failed."})


def finish_reason(event: Json, *, has_calls: bool) -> FinishReason:
    """Return the finish reason, from the last event."""
    response = read_object(event, "response")
    reason = read_object(response, "incomplete_details").get("reason")
    is_cut = "incomplete" in (
        response.get("status"),
        read_text(event, "type").removeprefix("response."),
    )
    if reason or is_cut:
        return read_finish(str(reason), FinishReason.LENGTH)
    return FinishReason.TOOL_CALLS if has_calls else FinishReason.STOP


class ReasoningStream:
    """The reasoning of one answer: its text, and the data to send back."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._text = SurrogateBuffer()
        self._part: tuple[Key, Part] | None = None
        self._data: dict[str, Any] = {}

    def add(self, key: Key, part: Part, delta: str) -> str:
        """Return the text to show for a delta; a new part begins on a new line.

        `part` is the kind of text and its number in the item `key`. If an item has both
        reasoning and a summary, only the one that comes first is shown.
        """
        previous, self._part = self._part, (key, part)
        if previous == self._part:
            return self._text.feed(delta)
        if previous and previous[0] == key and previous[1][0] != part[0]:
            self._part = previous
            return ""
        return self._text.feed(f"\n{delta}" if previous else delta)

    def store(self, item: Json) -> None:
        """Store the data of a complete item until the next item begins."""
        self._data = reasoning_data(item)

    def end(self, phase: str = "") -> list[ThinkingDelta]:
        """End the reasoning before the next item; return an event with its data.

        `phase` is that of a message which follows; it is sent back with that message.
        """
        data: dict[str, Any] = {}
        if self._data:
            data["item"], self._data = self._data, {}
        if phase:
            data["phase"] = phase
        if not data:
            return []
        return [ThinkingDelta(self._text.flush(), ProviderData(self._origin, data))]

    def flush(self) -> list[ThinkingDelta]:
        """Return half an emoji that is buffered."""
        text = self._text.flush()
        return [ThinkingDelta(text)] if text else []


class ResponsesAnswer(EventReader):
    """A Stage[ServerSentEvent, StreamEvent] that decodes the answer of a chat.

    Items are known by their `Key`: some servers send no index, and a new id each time.
    """

    dialect = OPENAI_RESPONSES

    def __init__(
        self, tool_names: Mapping[str, str], origin: Origin = NO_ORIGIN
    ) -> None:
        super().__init__(tool_names, origin)
        self._calls = Calls(tool_names)
        self._reasoning = ReasoningStream(origin)
        self._texts: dict[Key, list[str]] = {}  # deltas of messages, by item
        self._current_text: list[str] = []  # those of the current message
        self._with_deltas: set[Key] = set()  # items of which deltas came
        self._text_index: object = _NO_INDEX  # of the last delta of a text
        self._begun: set[Key] = set()  # items that came, at least in part
        self._ended: set[Key] = set()  # items that came as a whole
        self._has_foreign = False  # a tool was called that byok cannot run

    def _read_document(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if handle := self._HANDLERS.get(kind) if isinstance(kind, str) else None:
            handle(self, event)
        elif isinstance(kind, str) and kind.startswith("response."):
            pass  # other events repeat its content
        elif isinstance(event.get("output"), list):  # an answer in one piece
            self._read_end({"response": event})
        elif event.get("error") or is_error(event):
            raise refusal_of(event)

    def _add_text(self, event: Json) -> None:
        delta = event.get("delta")
        if isinstance(delta, str) and (text := self._text.feed(delta)):
            self._has_begun = True
            if (index := event.get("output_index")) != self._text_index:
                self._begin_text(_key(index, "message"))
                self._text_index = index
            self._current_text.append(delta)
            if self._think is None:  # as in nearly all events
                self._events.append(TextDelta(text))
            else:
                self._emit_text(text)

    def _begin_text(self, key: Key) -> None:
        """Begin or continue a message; a blank line separates it from the last one."""
        self._with_deltas.add(key)
        last = self._current_text[-1] if self._current_text else "\n"
        if key not in self._texts and not last.endswith("\n"):
            self._emit_text("\n\n")
        self._current_text = self._texts.setdefault(key, [])

    def _complete_text(self, key: Key, item: Json) -> None:
        """Emit the end of a message, if its last deltas were lost."""
        text, whole = "".join(self._texts.get(key, ())), message_text(item)
        if len(whole) > len(text) and whole.startswith(text):
            self._add_text({"delta": whole[len(text) :], "output_index": key})

    def _add_summary(self, event: Json) -> None:
        self._add_thought(event, ("summary", event.get("summary_index")))

    def _add_reasoning(self, event: Json) -> None:
        self._add_thought(event, ("content", event.get("content_index")))

    def _add_thought(self, event: Json, part: tuple[str, Any]) -> None:
        delta = event.get("delta")
        if not isinstance(delta, str) or not delta:
            return
        key = _key(event.get("output_index"), "reasoning")
        self._has_begun = True
        self._with_deltas.add(key)
        if thought := self._reasoning.add(key, part, delta):
            self._events.append(ThinkingDelta(thought))

    def _begin_item(self, event: Json) -> None:
        item = event.get("item")
        if isinstance(item, dict):
            self._open_item(event.get("output_index"), item)
            if item.get("type") == "function_call":
                self._before_call()
                self._events.append(self._calls.begin(event.get("output_index"), item))

    def _end_item(self, event: Json) -> None:
        item = event.get("item")
        if isinstance(item, dict):
            self._finish_item(event.get("output_index"), item)

    def _open_item(self, index: object, item: Json) -> Key:
        """Return the key of an item; its first event ends the reasoning before it."""
        kind = read_text(item, "type")
        key = _key(index, kind)
        if key not in self._begun:
            self._begun.add(key)
            self._end_thinking(read_text(item, "phase") if kind == "message" else "")
        return key

    def _finish_item(self, index: object, item: dict[str, Any]) -> None:
        """Read a complete item, and emit the parts that have not come yet."""
        key = self._open_item(index, item)
        self._ended.add(key)
        kind = read_text(item, "type")
        if key not in self._with_deltas and kind in self._with_deltas:
            key = kind  # its deltas came without an index
        has_deltas, self._text_index = key in self._with_deltas, _NO_INDEX
        match kind:
            case "message":
                self._complete_text(key, item)
                self._cite(item)
            case "reasoning":
                if not has_deltas:
                    event = {"delta": reasoning_text(item), "output_index": key}
                    self._add_thought(event, ("summary", None))
                self._has_begun = True
                self._reasoning.store(item)
            case "function_call":
                self._before_call()
                self._events.extend(self._calls.end(index, item))
            case _:
                self._finish_other(item)
        if not isinstance(key, int):  # another item of this kind may follow
            self._with_deltas.discard(key)
            self._begun.discard(key)
            self._texts.pop(key, None)

    def _before_call(self) -> None:
        self._has_begun = True
        if self._think is not None:
            self._events.extend(self._think.end())

    def _finish_other(self, item: dict[str, Any]) -> None:
        """Read a call of a tool that is not a function."""
        self._has_begun = True
        if read_text(item, "name") in self._calls.tool_names:
            function = {**item, "arguments": read_text(item, "input")}
            self._events.extend(self._calls.end(None, function))
        elif name := foreign_tool(item):
            self._has_foreign = True
            notice = (
                f"The model called `{name}`, a tool of its API that byok cannot run."
            )
            self._events.append(Notice(notice))

    def _cite(self, item: Json) -> None:
        """Emit the sources of a message that its text does not name."""
        if sources := citations(item):
            text = message_text(item)
            self._events += (Citation(*s) for s in sources if s[0] not in text)

    def _add_arguments(self, event: Json) -> None:
        self._has_begun = True
        self._events.extend(self._calls.add(event))

    def _end_arguments(self, event: Json) -> None:
        self._events.extend(self._calls.complete(event))

    def _end_thinking(self, phase: str = "") -> None:
        if ended := self._reasoning.end(phase):
            self._emit_half_emoji()
            self._events.extend(ended)

    def _emit_half_emoji(self) -> None:
        if text := self._text.flush():
            self._emit_text(text)

    def _fail(self, event: Json) -> None:
        raise failure_of(event)

    def _read_end(self, event: Json) -> None:
        """Read the last event: items that did not come before, usage, finish reason."""
        response = read_object(event, "response")
        # Not all servers send `response.failed`.
        if response.get("error") or response.get("status") in ("failed", "cancelled"):
            raise failure_of(event)
        self._read_output(response.get("output"))
        has_calls = self._calls.any or self._has_foreign
        self._finish = finish_reason(event, has_calls=has_calls)
        self._emit_end(read_usage(response.get("usage")))

    def _read_output(self, output: Any) -> None:
        """Read the items of a whole answer that did not come before."""
        items = output if isinstance(output, list) else []
        whole = [(n, item) for n, item in enumerate(items) if isinstance(item, dict)]
        known = self._with_deltas | self._begun
        has_indices = any(isinstance(key, int) for key in known)
        if has_indices or not self._has_begun:
            for index, item in whole:
                if index not in known or (
                    item.get("type") == "message" and index not in self._ended
                ):
                    self._finish_item(index, item)
        elif "message" in self._with_deltas:
            texts = [item for _, item in whole if item.get("type") == "message"]
            if len(texts) == 1:
                self._complete_text("message", texts[0])
        if self._calls.any:
            calls = [(n, i) for n, i in whole if i.get("type") == "function_call"]
            self._events.extend(self._calls.end_all(calls))

    def _flush_parts(self) -> None:
        """Emit buffered arguments, the reasoning's data, half an emoji, half a tag."""
        self._events.extend(self._calls.flush())
        self._end_thinking()
        self._events += self._reasoning.flush()
        self._emit_half_emoji()
        self._emit_partial_tag()

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


def _key(index: object, kind: str) -> Key:
    """Return the key of an item: its index or, without one, its kind."""
    return index if type(index) is int else kind
