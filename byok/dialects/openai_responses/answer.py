"""Responses: decoding the answer, of OpenAI and of compatible servers.

One reader decodes streamed events and whole answers. Some servers leave out deltas,
others the items, others everything but the last event, and gateways lose single deltas.
So what an event repeats completes what its deltas have brought: arguments always, text
where the deltas are its beginning (what was shown cannot be taken back).
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from byok.chat import NO_ORIGIN, Json, Origin
from byok.dialects.answer_reader import AnswerReader
from byok.dialects.error_bodies import refusal_of
from byok.dialects.openai_chat.strays import is_error
from byok.dialects.openai_chat.usage import read_usage
from byok.dialects.openai_responses.calls import Calls
from byok.dialects.openai_responses.endings import (
    check_protocol,
    failure_of,
    finish_reason,
    is_failure,
    raise_error_text,
    read_response,
)
from byok.dialects.openai_responses.items import (
    citations,
    foreign_tool,
    message_text,
    read_text,
    reasoning_text,
)
from byok.dialects.openai_responses.reasoning import ReasoningStream
from byok.dialects.think_tags import ThinkTags
from byok.errors import UpstreamNotJson
from byok.events import (
    Citation,
    Finish,
    Notice,
    TextDelta,
    ThinkingDelta,
)
from byok.wire.json_body import parse_json
from byok.wire.sse import ServerSentEvent
from byok.wire.surrogates import SurrogateBuffer

_NONE = object()


class ResponsesAnswer(AnswerReader[ServerSentEvent]):
    """Stage[ServerSentEvent, StreamEvent]: decodes the answer of a chat."""

    def __init__(
        self, tool_names: Mapping[str, str], origin: Origin = NO_ORIGIN
    ) -> None:
        super().__init__()
        self._calls = Calls(tool_names)
        self._text = SurrogateBuffer()
        self._reasoning = ReasoningStream(origin)
        self._think: ThinkTags | None = ThinkTags(origin)  # None once that is over
        self._texts: dict[int | str, list[str]] = {}  # of messages, by their items
        self._said: list[str] = []  # the text of the item that comes now
        self._told: set[int | str] = set()  # items of which deltas came
        self._telling: object = _NONE  # the place of the last of them
        self._seen: set[int | str] = set()  # items that came
        self._ended: set[int | str] = set()  # items that came as a whole
        self._has_foreign = False  # a tool was called that byok cannot run

    def _read(self, sse: ServerSentEvent) -> None:
        data = sse.data
        if self._done:
            return
        try:
            event = parse_json(data, keep_halves=True)
        except (ValueError, RecursionError) as error:
            raise_error_text(data.strip(), sse.event, error)
            return
        if not isinstance(event, dict):
            if sse.event == "error":
                raise refusal_of(event)
            raise UpstreamNotJson("a part of its answer is not a JSON object.")
        kind = event.get("type")
        if handle := self._HANDLERS.get(kind) if isinstance(kind, str) else None:
            handle(self, event)
        elif sse.event == "error":
            raise refusal_of(event)
        elif not isinstance(kind, str) or not kind.startswith("response."):
            self._read_document(event)

    def _read_document(self, document: dict[str, Any]) -> None:
        """Decode an answer in one piece, or an error."""
        check_protocol(document)
        if isinstance(document.get("output"), list):
            self._read_end({"response": document})
        elif document.get("error") or is_error(document):
            raise refusal_of(document)

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
                self._say(text)

    def _begin_text(self, key: int | str) -> None:
        """Begin or go on with a message; a blank line parts it from the last one."""
        self._told.add(key)
        if key not in self._texts and self._said and not self._said[-1].endswith("\n"):
            self._say("\n\n")
        self._said = self._texts.setdefault(key, [])

    def _complete_text(self, key: int | str, item: Json) -> None:
        """Give the end of a message, if its last deltas were lost."""
        said, whole = "".join(self._texts.get(key, ())), message_text(item)
        if len(whole) > len(said) and whole.startswith(said):
            self._add_text({"delta": whole[len(said) :], "output_index": key})

    def _say(self, text: str) -> None:
        if self._think is None:
            self._out.append(TextDelta(text))
            return
        self._out.extend(self._think.feed(TextDelta(text)))
        if self._think.over:
            self._think = None

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
        """Note that an item has begun, and return its key."""
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
            self._say(rest)

    def _fail(self, event: Json) -> None:
        raise failure_of(event)

    def _read_end(self, event: Json) -> None:
        """Read the last event: items that did not come before, usage, the reason."""
        response = read_response(event)
        if is_failure(response):
            raise failure_of(event)
        self._read_output(response.get("output"))
        self._done = True
        self._rest()
        if usage := read_usage(response.get("usage")):
            self._out.append(usage)
        has_calls = self._calls.any or self._has_foreign
        self._out.append(Finish(finish_reason(event, has_calls=has_calls)))

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
        if self._think is not None:
            self._out.extend(self._think.flush())

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
