"""Tools that byok runs itself, within the answer of a model that calls them.

The client sees neither these calls nor their results: the model gets both, and goes on.
An answer may also call tools of the client. Then the client gets its calls, runs them
and asks again, but its history lacks byok's calls and results. So these are kept by the
client's call, and put back into the history wherever that call is in it, which also
keeps the prompt the same for the upstream's cache. What was forgotten, as after a
restart, is left out: the history is valid without it.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.chat import (
    ChatRequest,
    Json,
    Message,
    Part,
    Role,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolUse,
    calls_of,
    is_said_by_user,
)
from byok.core.events import Citation, Notice
from byok.core.record import current_record
from byok.core.wire.json_fields import parse_object
from byok.upstream.toolcalls.provider_data import call_key, conversations
from byok.upstream.window.estimate import weigh

_log = logging.getLogger(__name__)
MOST_ROUNDS = 5  # answers with calls that are run, in a turn of the user's
_MOST_CALLS = 5  # that are run of one answer
_KEPT_BYTES = 16 * 2**20
_MARKS = re.compile(r"[\W_]+")
_LAST = (
    "\n(byok runs no more tools of its own in this turn: answer with what you have.)"
)
_TOO_MANY = (
    f"ERROR: not run. byok runs its own tools at most {MOST_ROUNDS} times a turn, "
    f"{_MOST_CALLS} calls at once. Go on with what you have."
)


class OwnResult(Struct, frozen=True):
    """What a tool of byok's own gives: `text` to the model, the `line` to the user.

    An answer cites those of the `sources` that it names, and any that `is_read`: the
    model has read that one whole.
    """

    text: str
    line: str
    sources: tuple[Citation, ...] = ()
    is_read: bool = False
    is_error: bool = False


class OwnTool(Protocol):
    """A tool that byok runs itself."""

    @property
    def definition(self) -> ToolDefinition:
        """What the model is told of it."""

    async def run(self, arguments: Json, /) -> OwnResult:
        """Run it; what fails is a result, too."""


class OwnCalls(Struct, frozen=True):
    """An answer that calls tools of byok's own: its parts, and which calls these are.

    `for_client` are the calls of the client's tools.
    """

    parts: tuple[Part, ...]
    calls: tuple[ToolCall, ...]
    for_client: tuple[ToolCall, ...] = ()


class _Kept(Struct, frozen=True):
    """What stands where the client has an answer: what came before it, and all of it.

    `own` are the ids of byok's calls in the answer, `results` what they gave.
    """

    before: tuple[Message, ...]
    parts: tuple[Part, ...]
    own: frozenset[str]
    results: tuple[Message, ...]

    def messages(self, call_ids: Collection[str]) -> Iterable[Message]:
        """Give the messages; the client may have left out some of its calls."""
        parts = tuple(
            part
            for part in self.parts
            if not isinstance(part, ToolCall) or part.id in {*self.own, *call_ids}
        )
        return (*self.before, Message(Role.ASSISTANT, parts), *self.results)


_KeptAnswers: TypeAlias = BoundedMap[tuple[str, bytes], _Kept]  # by call of a client's


class OwnTools:
    """byok's own tools, which may change, and what their answers leave behind."""

    def __init__(self, tools: Callable[[], Iterable[OwnTool]] = tuple) -> None:
        self._tools = tools
        self._kept = _KeptAnswers(
            _KEPT_BYTES, lambda _, kept: sum(map(weigh, kept.messages(())))
        )

    def begin(self, chat: ChatRequest) -> "OwnTurn | None":
        """Return what runs byok's own tools for a request, None if it gets none.

        They are for chats and agents. A client's own tool of the same name wins. A
        client of /v1 that offers no tools expects no answer that needs some.
        """
        tools = {tool.definition.name: tool for tool in self._tools()}
        if not tools or not _takes_tools(chat):
            return None
        given = {_plain(tool.name) for tool in chat.tools}
        tools = {name: one for name, one in tools.items() if _plain(name) not in given}
        return OwnTurn(chat, tools, self._kept) if tools else None


class OwnTurn:
    """byok's own tools in one answer, whatever number of requests it takes.

    Attributes:
        request: the question with these tools, and with what was kept of earlier ones.
        names: of the tools.
        has_run: whether an answer to this question called any.
        sources: what the model was shown, and whether it was read whole.
    """

    def __init__(
        self,
        chat: ChatRequest,
        tools: Mapping[str, OwnTool],
        kept: _KeptAnswers,
    ) -> None:
        self._chat = chat
        self._tools = tools
        self._kept = kept
        self.names = tools.keys()
        definitions = (tool.definition for tool in tools.values())
        messages = _restore(chat, kept) if len(kept) else chat.messages
        self.request = replace(
            chat, messages=messages, tools=(*chat.tools, *definitions)
        )
        restored = messages is not chat.messages
        self._rounds = _count_rounds(messages, self.names) if restored else 0
        self.has_run = False
        self.sources: list[tuple[Citation, bool]] = []

    async def answer(
        self, request: ChatRequest, made: OwnCalls
    ) -> tuple[ChatRequest | None, list[Notice]]:
        """Run byok's calls of an answer to a request; return the next one, if any.

        There is none if the client has calls to run, or if the model goes on with calls
        that are not run. The notices tell the user what was done.
        """
        if not made.for_client and len(request.tools) < len(self.request.tools):
            return None, []
        places = range(len(made.calls))
        ran = await asyncio.gather(*map(self._run, made.calls, places))
        self.has_run = True
        self._rounds += bool(made.calls)
        current_record().tool_calls += [call.name for call in made.calls]
        note = _LAST if self._rounds == MOST_ROUNDS else ""
        results = tuple(
            Message(
                Role.TOOL,
                (ToolResult(call.id, call.name, one.text + note, one.is_error),),
            )
            for call, one in zip(made.calls, ran, strict=True)
        )
        self.sources += [(source, one.is_read) for one in ran for source in one.sources]
        notices = [Notice(one.line, at_once=True) for one in ran if one.line]
        if made.for_client:
            self._keep(request, made, results)
            return None, notices
        is_over = self._rounds > MOST_ROUNDS
        tools = request.tools[: -len(self.names)] if is_over else request.tools
        said = Message(Role.ASSISTANT, made.parts)
        messages = (*request.messages, said, *results)
        return replace(request, messages=messages, tools=tools), notices

    def _keep(
        self, request: ChatRequest, made: OwnCalls, results: tuple[Message, ...]
    ) -> None:
        *_, conversation = conversations(self._chat)
        before = request.messages[len(self.request.messages) :]
        if before or results:
            call = made.for_client[0]
            key = (call.id, call_key(conversation, call))
            own = frozenset(call.id for call in made.calls)
            self._kept[key] = _Kept(before, made.parts, own, results)

    async def _run(self, call: ToolCall, place: int) -> OwnResult:
        if self._rounds >= MOST_ROUNDS or place >= _MOST_CALLS:
            return OwnResult(_TOO_MANY, "", is_error=True)
        try:
            arguments = parse_object(call.arguments) or {}
            return await self._tools[call.name].run(arguments)
        except Exception:  # a bug in one tool; the rest of the answer is of use
            _log.exception("%s failed", call.name)
            return OwnResult("ERROR: it failed.", f"{call.name} failed.", is_error=True)


def _takes_tools(chat: ChatRequest) -> bool:
    is_job = chat.silent or chat.whole or chat.verbatim or chat.fim
    is_chat = bool(chat.prompt or chat.tools)  # a prompt of byok's, or an agent of /v1
    is_free = chat.tool_choice.use is ToolUse.AUTO and chat.json_answer is None
    return is_chat and is_free and not is_job


@lru_cache(1000)
def _plain(name: str) -> str:
    """Return what is left of a name in every spelling, such as WebSearch."""
    return _MARKS.sub("", name).casefold()


def _restore(chat: ChatRequest, kept: _KeptAnswers) -> tuple[Message, ...]:
    """Return the messages with what was kept in the place of the answers it is of."""
    ids = {call_id for call_id, _ in kept}
    answers = (m for m in chat.messages if m.role is Role.ASSISTANT)
    if not any(type(p) is ToolCall and p.id in ids for m in answers for p in m.parts):
        return chat.messages
    out: list[Message] = []
    for message, talk in zip(chat.messages, conversations(chat), strict=False):
        calls = calls_of(message)
        found = (kept.get((call.id, call_key(talk, call))) for call in calls)
        if answer := next(filter(None, found), None):
            out += answer.messages({call.id for call in calls})
        else:
            out.append(message)
    return tuple(out)


def _count_rounds(messages: Sequence[Message], names: Collection[str]) -> int:
    """Count the answers with calls of byok's tools since the user spoke last."""
    rounds = 0
    for message in reversed(messages):
        if is_said_by_user(message):
            break
        rounds += any(call.name in names for call in calls_of(message))
    return rounds
