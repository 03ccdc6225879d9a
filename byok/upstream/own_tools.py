"""Tools that byok runs itself, within the answer of a model that calls them.

The client sees neither these calls nor their results: byok sends both to the model,
which continues its answer. An answer may also call tools of the client. The client gets
these calls, runs them and sends the next request, but its history lacks byok's calls
and results. So byok stores its own under the client's call, and puts them back into the
history where that call is, which also keeps the prompt the same for the upstream's
cache. Entries that were evicted, or lost in a restart, are left out: the history is
valid without them.
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
MAX_ROUNDS = 5  # answers with own calls that are run, in one turn of the user
_MAX_CALLS = 5  # that are run of one answer
_MAX_STORED_BYTES = 16 * 2**20
_PUNCTUATION = re.compile(r"[\W_]+")
_LAST_ROUND = (
    "\n(byok runs no more tools of its own in this turn: answer with what you have.)"
)
_TOO_MANY = (
    f"ERROR: not run. byok runs its own tools at most {MAX_ROUNDS} times a turn, "
    f"{_MAX_CALLS} calls at once. Go on with what you have."
)


class OwnResult(Struct, frozen=True):
    """The result of byok's own tool: the model gets `text`, the user gets `line`.

    An answer cites the `sources` that it mentions, and all of them if `is_read`: the
    model has read their whole text.
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
        """The definition that the model gets."""

    async def run(self, arguments: Json, /) -> OwnResult:
        """Run the tool; an expected failure is a result with an error."""


class OwnCalls(Struct, frozen=True):
    """The `parts` of an answer that calls byok's own tools, and these `calls`.

    `for_client` are the calls of the client's tools.
    """

    parts: tuple[Part, ...]
    calls: tuple[ToolCall, ...]
    for_client: tuple[ToolCall, ...] = ()


class _StoredAnswer(Struct, frozen=True):
    """The messages that replace an answer in the client's history.

    `earlier` are the rounds of byok's own calls before the answer, `parts` the whole
    answer, `own_ids` the ids of byok's calls in it, and `results` their results.
    """

    earlier: tuple[Message, ...]
    parts: tuple[Part, ...]
    own_ids: frozenset[str]
    results: tuple[Message, ...]

    def messages(self, call_ids: Collection[str]) -> Iterable[Message]:
        """Return the messages; `call_ids` are the client's calls in its history."""
        parts = tuple(
            part
            for part in self.parts
            if not isinstance(part, ToolCall) or part.id in {*self.own_ids, *call_ids}
        )
        return (*self.earlier, Message(Role.ASSISTANT, parts), *self.results)


# By the id and the key of the client's first call in the answer.
_AnswerStore: TypeAlias = BoundedMap[tuple[str, bytes], _StoredAnswer]


class OwnTools:
    """byok's own tools, which may change, and a store of answers that called them."""

    def __init__(self, tools: Callable[[], Iterable[OwnTool]] = tuple) -> None:
        self._tools = tools
        self._answers = _AnswerStore(
            _MAX_STORED_BYTES, lambda _, answer: sum(map(weigh, answer.messages(())))
        )

    def begin(self, chat: ChatRequest) -> "OwnTurn | None":
        """Return the turn that runs byok's own tools for a request, None for no tools.

        Only chats and agents get tools. A client's own tool of the same name wins. A
        client of /v1 that offers no tools expects an answer without calls.
        """
        tools = {tool.definition.name: tool for tool in self._tools()}
        is_job = chat.silent or chat.whole or chat.verbatim or chat.fim
        is_chat = chat.prompt or chat.tools  # a prompt of byok's, or an agent of /v1
        is_free = chat.tool_choice.use is ToolUse.AUTO and chat.json_answer is None
        if not tools or is_job or not (is_chat and is_free):
            return None
        taken = {_normalize(tool.name) for tool in chat.tools}
        tools = {n: tool for n, tool in tools.items() if _normalize(n) not in taken}
        return OwnTurn(chat, tools, self._answers) if tools else None


class OwnTurn:
    """byok's own tools in one answer, however many requests it takes.

    Attributes:
        request: the question with these tools, and with the stored messages put back.
        names: the names of the tools.
        has_run: whether an answer to this question called any of them.
        sources: the sources that the model got, and whether it read their whole text.
    """

    def __init__(
        self,
        chat: ChatRequest,
        tools: Mapping[str, OwnTool],
        answers: _AnswerStore,
    ) -> None:
        self._chat = chat
        self._tools = tools
        self._answers = answers
        self.names = tools.keys()
        definitions = (tool.definition for tool in tools.values())
        messages = _restore_answers(chat, answers) if len(answers) else chat.messages
        self.request = replace(
            chat, messages=messages, tools=(*chat.tools, *definitions)
        )
        is_restored = messages is not chat.messages
        self._rounds = _count_rounds(messages, self.names) if is_restored else 0
        self.has_run = False
        self.sources: list[tuple[Citation, bool]] = []

    async def run_calls(
        self, request: ChatRequest, answer: OwnCalls
    ) -> tuple[ChatRequest | None, list[Notice]]:
        """Run byok's calls of an answer to a request; return the next request, if any.

        There is none if the client has calls to run, or if the model made calls again
        after the last round. The notices tell the user what was done.
        """
        if not answer.for_client and len(request.tools) < len(self.request.tools):
            return None, []
        numbers = range(len(answer.calls))
        outcomes = await asyncio.gather(*map(self._run, answer.calls, numbers))
        self.has_run = True
        self._rounds += bool(answer.calls)
        current_record().tool_calls += [call.name for call in answer.calls]
        note = _LAST_ROUND if self._rounds == MAX_ROUNDS else ""
        results = tuple(
            Message(
                Role.TOOL,
                (ToolResult(call.id, call.name, out.text + note, out.is_error),),
            )
            for call, out in zip(answer.calls, outcomes, strict=True)
        )
        self.sources += [(src, out.is_read) for out in outcomes for src in out.sources]
        notices = [Notice(out.line, at_once=True) for out in outcomes if out.line]
        if answer.for_client:
            self._store(request, answer, results)
            return None, notices
        is_over = self._rounds > MAX_ROUNDS
        tools = request.tools[: -len(self.names)] if is_over else request.tools
        message = Message(Role.ASSISTANT, answer.parts)
        messages = (*request.messages, message, *results)
        return replace(request, messages=messages, tools=tools), notices

    def _store(
        self, request: ChatRequest, answer: OwnCalls, results: tuple[Message, ...]
    ) -> None:
        *_, conversation = conversations(self._chat)
        earlier = request.messages[len(self.request.messages) :]
        if earlier or results:
            call = answer.for_client[0]
            key = (call.id, call_key(conversation, call))
            own_ids = frozenset(call.id for call in answer.calls)
            self._answers[key] = _StoredAnswer(earlier, answer.parts, own_ids, results)

    async def _run(self, call: ToolCall, number: int) -> OwnResult:
        if self._rounds >= MAX_ROUNDS or number >= _MAX_CALLS:
            return OwnResult(_TOO_MANY, "", is_error=True)
        try:
            arguments = parse_object(call.arguments) or {}
            return await self._tools[call.name].run(arguments)
        except Exception:  # a bug in one tool must not end the answer
            _log.exception("%s failed", call.name)
            return OwnResult("ERROR: it failed.", f"{call.name} failed.", is_error=True)


@lru_cache(1000)
def _normalize(name: str) -> str:
    """Return a name without case and separators: WebSearch and web_search are equal."""
    return _PUNCTUATION.sub("", name).casefold()


def _restore_answers(chat: ChatRequest, answers: _AnswerStore) -> tuple[Message, ...]:
    """Return the messages of a chat, with stored answers in place of the client's."""
    ids = {call_id for call_id, _ in answers}
    replies = (m for m in chat.messages if m.role is Role.ASSISTANT)
    if not any(type(p) is ToolCall and p.id in ids for m in replies for p in m.parts):
        return chat.messages
    restored: list[Message] = []
    for message, conversation in zip(chat.messages, conversations(chat), strict=False):
        calls = calls_of(message)
        matches = (answers.get((c.id, call_key(conversation, c))) for c in calls)
        if answer := next(filter(None, matches), None):
            restored += answer.messages({call.id for call in calls})
        else:
            restored.append(message)
    return tuple(restored)


def _count_rounds(messages: Sequence[Message], names: Collection[str]) -> int:
    """Count the answers with calls of byok's tools since the user's last message."""
    rounds = 0
    for message in reversed(messages):
        if is_said_by_user(message):
            break
        rounds += any(call.name in names for call in calls_of(message))
    return rounds
