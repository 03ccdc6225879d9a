"""Assemble complete tool calls from the fragments of a stream.

Calls are buffered until the end of the answer, because a client runs a tool as soon as
it sees the call. A stream that was cut off may end on valid JSON by chance, and half a
command is worse than none. So no call is passed on before the upstream reported the
end, and none at all if it stopped at the output limit: a Notice tells the user. Only
the place of a call is announced early (ToolCallPlace), because several providers want
the history back in its exact order.

Matching fragments to calls needs rules, because compatible servers disagree: recorded
streams repeat name and id in every delta, send ids that are empty or null after the
first one, count indexes from 1, leave them out or repeat them, and send several
complete calls in one delta. A fragment belongs to the call with its id, else to the one
with its index, else to the last one. A new id at a known index starts a new call only
if it has a name. Widely used decoders concatenate repeated names (`viewview`); here
names are joined only while the result is a prefix of the name of an offered tool. A
name in a known wrapping (`functions.view`) is that of the only offered tool that it can
mean.

Some hosts send a call and leave its text in the answer as well. Such a printed call
(`printed_calls.py`) is passed on only if the host did not send the same call.

What breaks if this changes: joining by index alone merges parallel calls of servers
that repeat an index; joining by id alone loses the fragments without one; passing calls
on early runs half commands; without `_MAX_JSON_CHECKS` an answer with many closing
braces takes quadratic time. Every rule has its test in
tests/upstream/toolcalls/test_assemble.py.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    Message,
    Part,
    ProviderData,
    RepairMode,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.core.events import (
    Finish,
    FinishReason,
    Notice,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallPlace,
)
from byok.core.wire.json_body import is_object, join_surrogates, parse_json
from byok.upstream.toolcalls.repair import (
    Repair,
    ToolNames,
    Unrepairable,
    is_memory_tool,
    memory_supply,
    repair_arguments,
)

MAX_CALLS = 64
MAX_ARGUMENT_CHARS = 1024 * 1024
_MAX_JSON_CHECKS = 1000  # a call; real calls need a handful; keeps the work linear
_MAX_NAME_CHARS = 64
_MAX_RULE_CHARS = 80
_CONTEXT_CHARS = 80  # shown to the model on either side of a wrong character


class _OpenCall(Struct):
    id: str = ""
    index: int | None = None
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    size: int = 0
    provider_data: ProviderData | None = None
    place_id: str = ""  # the final id, once the place of the call was announced
    json_checks: int = 0  # how often the text was parsed to see whether it is complete
    is_printed: bool = False

    @property
    def text(self) -> str:
        return join_surrogates("".join(self.pieces))

    @property
    def is_empty(self) -> bool:
        return not self.name and not self.text.strip()


class BrokenCall(Struct, frozen=True):
    """A call that arrived completely, but whose arguments are not a JSON object.

    `call` has the unchanged arguments, `problem` says what is wrong, and `offset` is
    the index of the first wrong character (0 if it is unknown).
    """

    call: ToolCall
    problem: str
    offset: int


class ToolCallAssembler:
    """A Stage that joins ToolCallDelta events into complete, repaired ToolCalls.

    All other events pass through. `new_id` makes an id for a call without one, or with
    one that is in `taken`. Calls are passed on right before the Finish event. From then
    on `broken` lists the complete calls whose arguments are not a JSON object, and
    `others` counts all other calls. If the answer stopped at the output limit, no call
    is passed on, `broken` is empty and `others` is 0. `on_drop` is called with the name
    of each complete call that is not passed on.
    """

    def __init__(
        self,
        tools: Iterable[ToolDefinition],
        *,
        new_id: Callable[[], str],
        mode: RepairMode = RepairMode.LOSSLESS,
        user_text: str = "",
        taken: Iterable[str] = (),
        on_repair: Callable[[Repair], None] = lambda repair: None,
        on_drop: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._tools = [*tools]
        self._schemas = {tool.name: tool.parameters for tool in self._tools}
        self._new_id = new_id
        self._mode = mode
        self._supply = memory_supply(user_text)
        self._taken = set(taken)
        self._on_repair = on_repair
        self._on_drop = on_drop
        self._calls: list[_OpenCall] = []
        self._too_many = False
        self.unplaced: list[_OpenCall] = []  # calls whose place was not announced
        self.others = 0
        self.broken: list[BrokenCall] = []

    def feed(self, event: StreamEvent, /) -> Iterable[StreamEvent]:
        """Store a fragment, return complete calls at Finish, and any other event."""
        if isinstance(event, ToolCallDelta):
            self._add_fragment(event)
            return ()
        if isinstance(event, Finish):
            return (*self._close(event), event)
        if self.unplaced and isinstance(event, (TextDelta, ThinkingDelta)):
            return (*self.place_calls(event), event)
        return (event,)

    def place_calls(self, event: TextDelta | ThinkingDelta) -> list[ToolCallPlace]:
        """Announce the calls that began before this text or reasoning, each once.

        A ToolCallPlace marks the position of a call among the blocks of the answer; the
        call itself follows at the end. White space is ignored, because many models send
        a line break after a call.
        """
        if not event.text.strip() and not getattr(event, "provider_data", None):
            return []
        named = [call for call in self.unplaced if call.name]
        self.unplaced = [call for call in self.unplaced if not call.name]
        for call in named:
            call.place_id = self._unique_id(call.id)
        return [ToolCallPlace(call.place_id) for call in named]

    @property
    def has_hidden_call(self) -> bool:
        """Whether calls have begun, and nothing of them was passed on, nor a place."""
        return bool(self._calls) and not any(call.place_id for call in self._calls)

    def flush(self) -> Iterator[StreamEvent]:
        """Yield a Notice that names the open calls, if no Finish event came."""
        if calls := self._pop_calls():
            yield incomplete_notice(_names_of_cut(calls))

    def _pop_calls(self) -> list[_OpenCall]:
        """Remove and return all calls but the empty ones that some gateways send."""
        calls, self._calls, self.unplaced = self._calls, [], []
        return [call for call in calls if not call.is_empty]

    def _add_fragment(self, delta: ToolCallDelta) -> None:
        if self._too_many:
            return
        call = self._find_call(delta)
        if call is None:
            if len(self._calls) == MAX_CALLS:
                self._too_many = True
                return
            call = _OpenCall(is_printed=delta.is_printed)
            self._calls.append(call)
            self.unplaced.append(call)
        elif delta.id and self._is_repeat(call, delta):
            return
        call.id = call.id or delta.id
        if delta.name and self._is_piece(call, delta.name):
            call.name += delta.name
        call.name = call.name or delta.name
        call.provider_data = call.provider_data or delta.provider_data
        if call.index is None:
            call.index = delta.index
        call.size += len(delta.arguments)
        if delta.arguments and call.size <= MAX_ARGUMENT_CHARS:
            call.pieces.append(delta.arguments)

    def _find_call(self, delta: ToolCallDelta) -> _OpenCall | None:
        """Return the call that a fragment belongs to; None if it starts a new one."""
        if not delta.id and not delta.name:  # nearly every fragment
            for call in reversed(self._calls):
                if delta.index is None or delta.index == call.index:
                    return call
            return None
        same_index = [c for c in self._calls if c.index == delta.index is not None]
        if delta.id:
            for call in reversed(self._calls):
                has_moved = delta.index is not None and (
                    call.index not in (None, delta.index)
                )  # so a name opens a second call with this id
                if call.id == delta.id and not (has_moved and delta.name):
                    return call
            if delta.index is not None:
                latest = same_index[-1] if same_index else None
                return None if latest and delta.name and latest.id else latest
            return None if delta.name or not self._calls else self._calls[-1]
        if delta.index is not None:
            return self._find_by_name(same_index, delta)
        return self._find_by_name(self._calls, delta)

    def _is_piece(self, call: _OpenCall, name: str) -> bool:
        """Tell whether a name continues that of a call that has no arguments yet."""
        if not call.name or call.pieces or call.name == name:
            return False
        if call.name in self._schemas and name in self._schemas:
            return False
        return any(offered.startswith(call.name + name) for offered in self._schemas)

    def _find_by_name(
        self, calls: list[_OpenCall], delta: ToolCallDelta
    ) -> _OpenCall | None:
        """Return the call that a named fragment without an id continues, if any."""
        if not calls:
            return None
        last = calls[-1]
        if last.name and last.name != delta.name:
            return last if self._is_piece(last, delta.name) else None
        if delta.index is not None and not delta.arguments.strip():
            return last  # a repeated name without arguments
        is_closed = bool(last.pieces) and last.pieces[-1].rstrip().endswith("}")
        if not is_closed or last.json_checks >= _MAX_JSON_CHECKS:
            return last
        last.json_checks += 1
        return None if is_object(last.text) else last

    @staticmethod
    def _is_repeat(call: _OpenCall, delta: ToolCallDelta) -> bool:
        """Tell whether a complete call was sent twice: same id, name and arguments."""
        return bool(
            delta.id
            and delta.id == call.id
            and delta.name == call.name
            and call.size == len(delta.arguments)
            and call.text == delta.arguments
            and is_object(delta.arguments)
        )

    def _close(self, finish: Finish) -> Iterator[StreamEvent]:
        calls = self._pop_calls()
        if calls and finish.reason is FinishReason.LENGTH:
            for call in calls:
                self._on_drop(call.name)
            yield cut_notice(_names_of_cut(calls))
            return
        results = [(call, self._complete(call)) for call in calls]
        sent_calls = [
            result
            for call, result in results
            if isinstance(result, ToolCall) and not call.is_printed
        ]
        for call, result in results:
            if isinstance(result, Notice):
                self._on_drop(call.name)
            elif call.is_printed and any(_is_same(result, c) for c in sent_calls):
                continue
            yield result
        self.others = len(calls) - len(self.broken)
        if self._too_many:
            yield Notice(
                f"The model asked for more than {MAX_CALLS} tool calls at once; "
                "only the first ones were passed on.",
                "too_many_tool_calls",
            )

    def _complete(self, call: _OpenCall) -> ToolCall | Notice:
        """Return the repaired call, or why it is not passed on."""
        if not call.name or call.size > MAX_ARGUMENT_CHARS:
            return incomplete_notice([call.name])
        text, rules = call.text, ["printed as text"] if call.is_printed else []
        may_rename = self._mode is not RepairMode.OFF and call.name not in self._schemas
        if may_rename and (
            name := ToolNames({n: n for n in self._schemas}).find(call.name)
        ):
            rules.append(f"called {call.name}"[:_MAX_RULE_CHARS])
            call.name = name
        schema = self._schemas.get(call.name)
        offered = (tool for tool in self._tools if tool.name == call.name)
        is_memory = any(is_memory_tool(tool.name, tool.description) for tool in offered)
        try:
            arguments, argument_rules = repair_arguments(
                text,
                schema,
                mode=self._mode,
                supply=self._supply if is_memory else None,
            )
        except Unrepairable as error:
            if error.cut:
                return incomplete_notice([call.name])
            call_id = call.place_id or self._unique_id(call.id)
            raw = ToolCall(call_id, call.name, text, call.provider_data)
            self.broken.append(BrokenCall(raw, str(error), error.offset))
            return Notice(
                f"The model's call of {call.name[:_MAX_NAME_CHARS]} was not passed on, "
                "because its arguments are not valid JSON; ask it to try again.",
                "tool_call_invalid",
            )
        if rules := [*rules, *argument_rules]:
            rule = "; ".join(dict.fromkeys(rules))
            self._on_repair(Repair(call.name, text, arguments, rule))
        call_id = call.place_id or self._unique_id(call.id)
        return ToolCall(call_id, call.name, arguments, call.provider_data)

    def _unique_id(self, call_id: str) -> str:
        """Return an id, or a new one if it is empty or in use."""
        while not call_id or call_id in self._taken:
            call_id = self._new_id()
        self._taken.add(call_id)
        return call_id


def _is_same(call: ToolCall, other: ToolCall) -> bool:
    """Tell whether two calls are of the same tool with the same arguments."""
    if call.name != other.name:
        return False
    texts = (call.arguments, other.arguments)
    first, second = (
        parse_json(text.encode("utf-8", "surrogatepass")) for text in texts
    )
    return bool(first == second)


def _names_of_cut(calls: list[_OpenCall]) -> list[str]:
    """Return the names of the incomplete calls, or that of the last call."""
    cut = [call.name for call in calls if not is_object(call.text)]
    return cut or [calls[-1].name]


def incomplete_notice(names: Iterable[str]) -> Notice:
    """Return the notice about calls that arrived incompletely."""
    return Notice(
        f"The model's call of {_list_tools(names)} was incomplete and was not passed "
        "on; ask it to try again.",
        "tool_call_incomplete",
    )


def cut_notice(names: Iterable[str]) -> Notice:
    """Return the notice about calls that the output limit cut off."""
    return Notice(
        f"The model reached its output limit in its call of {_list_tools(names)}, so "
        "none of its calls was passed on; ask it for less at once, or raise "
        "max_tokens.",
        "tool_call_incomplete",
    )


def _list_tools(names: Iterable[str]) -> str:
    """Name each tool once; a name may be empty."""
    return ", ".join(dict.fromkeys(n[:_MAX_NAME_CHARS] or "a tool" for n in names))


def correction_request(
    chat: ChatRequest, parts: Sequence[Part], broken: Sequence[BrokenCall]
) -> ChatRequest | None:
    """Return a request that shows the model its answer and what was wrong with it.

    `parts` are the text and thoughts of the answer. The broken calls are shown with
    empty arguments, because strict upstreams refuse invalid ones. Returns None if there
    is no broken call, or one of a tool that was not offered: upstreams refuse such a
    history.
    """
    offered = {tool.name for tool in chat.tools}
    if not broken or any(b.call.name not in offered for b in broken):
        return None
    calls = (replace(b.call, arguments="{}") for b in broken)
    answer = Message(Role.ASSISTANT, (*parts, *calls))
    results = (Message(Role.TOOL, (_error_result(b),)) for b in broken)
    return replace(chat, messages=(*chat.messages, answer, *results))


def answer_parts(
    pieces: Iterable[str | ThinkingDelta | ToolCallPlace],
    calls: Iterable[ToolCall] = (),
) -> list[Part]:
    """Join the pieces of an answer to blocks, in their order; text is given as str.

    Calls are put where their places are, and calls without a place at the end.
    """
    parts: list[Part] = []
    unplaced = {call.id: call for call in calls}
    for kind, group in groupby(pieces, type):
        texts: list[str] = []
        for piece in group:
            if isinstance(piece, str):
                texts.append(piece)
            elif isinstance(piece, ToolCallPlace):
                if call := unplaced.pop(piece.call_id, None):
                    parts.append(call)
            else:
                texts.append(piece.text)
                if piece.provider_data:
                    parts.append(ThinkingPart("".join(texts), piece.provider_data))
                    texts = []
        if text := "".join(texts):
            if kind is ThinkingDelta:
                parts.append(ThinkingPart(text))
            elif text.strip():
                parts.append(TextPart(text))
    return [*parts, *unplaced.values()]


def _error_result(broken: BrokenCall) -> ToolResult:
    call, offset = broken.call, broken.offset
    raw, start, end = (
        call.arguments,
        max(0, offset - _CONTEXT_CHARS),
        offset + _CONTEXT_CHARS,
    )
    context = f"{'…' if start else ''}{raw[start:end]}{'…' if raw[end:] else ''}"
    text = (
        "ERROR: the tool was not run, because the arguments of this call are not valid "
        f"JSON: {broken.problem} (character {offset}). The text there is:\n{context}\n"
        "Make the call again, as one JSON object. Inside its strings a backslash is "
        'written \\\\, a quotation mark \\" and a line break \\n.'
    )
    return ToolResult(call.id, call.name, text, is_error=True)


class RepetitionFilter:
    """Removes from a second answer the text that the first one already showed.

    Models often begin again with the words that preceded the broken call.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown.strip()
        self._separator = "" if shown.endswith("\n") else "\n\n"
        self._buffer = ""
        self._is_done = not self._shown

    def feed(self, text: str) -> str:
        """Return the new text; "" as long as it may still be a repetition."""
        if self._is_done:
            return text
        self._buffer += text
        stripped = self._buffer.lstrip()
        if self._shown.startswith(stripped):
            return ""
        self._is_done, self._buffer = True, ""
        if stripped.startswith(self._shown):
            return stripped[len(self._shown) :]
        return self._separator + stripped
