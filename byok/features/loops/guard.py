"""Loops in a conversation: noted behind the results that show them, and ended."""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    Message,
    Role,
    ToolCall,
    ToolResult,
    calls_of,
    is_said_by_user,
)
from byok.features.base import PASS, Asking, Feature, Site, Supplies, Verdict
from byok.features.loops.settings import LoopSettings
from byok.features.loops.watch import AnsweredCall, Loop, LoopWatch


class LoopGuard(Feature):
    """Tells a model that it goes round in circles, and ends the turn if it goes on."""

    def __init__(self, site: Site) -> None:
        """Keep nothing: clients send the whole conversation."""
        super().__init__(site)
        self._limits = LoopSettings(on=False)

    def configure(self, supplies: Supplies, /) -> None:
        """Use these limits from now on."""
        self._limits = supplies.settings.section(LoopSettings)

    async def admit(self, asking: Asking, /) -> Verdict:
        """Add the notes; end a turn whose model was told before."""
        chat = asking.chat
        if chat is None or not self._limits.on or not _has_results(chat):
            return PASS
        noted, loop = await asking.run(partial(note_loops, chat, self._limits))
        if loop is not None:
            asking.record.loop = loop.fact
            if loop.ends and not chat.silent:
                return Verdict(answer=loop.for_user)
        return PASS if noted is chat else Verdict(chat=noted)


def note_loops(
    chat: ChatRequest, limits: LoopSettings
) -> tuple[ChatRequest, Loop | None]:
    """Return the conversation with notes for the model, and the loop it is in now.

    A note stands where the loop showed, and stays there in later requests. Where the
    user has spoken since, there is no loop, and no note is needed.
    """
    watch, messages = LoopWatch(limits), [*chat.messages]
    loop: Loop | None = None
    has_notes = False
    place = 0
    while place < len(messages):
        begin, place = place, place + 1
        if is_said_by_user(messages[begin]):
            watch.begin_turn()
            loop = None
        elif messages[begin].role is Role.ASSISTANT:
            loop = None
        elif messages[begin].role is Role.TOOL:
            while place < len(messages) and messages[place].role is Role.TOOL:
                place += 1
            if place < len(messages) and is_said_by_user(messages[place]):
                continue
            calls = calls_of(messages[begin - 1]) if begin else []
            results = [_result_of(message) for message in messages[begin:place]]
            loop = watch.add_step(_pair(calls, results))
            if loop is not None:
                has_notes |= _add_note(messages, begin, place, loop.for_model)
    return (replace(chat, messages=tuple(messages)) if has_notes else chat), loop


def _has_results(chat: ChatRequest) -> bool:
    return Role.TOOL in [message.role for message in chat.messages]


def _result_of(message: Message) -> ToolResult:
    [result] = [part for part in message.parts if isinstance(part, ToolResult)]
    return result


def _pair(
    calls: Sequence[ToolCall], results: Sequence[ToolResult]
) -> list[AnsweredCall]:
    """Pair calls with their results; one that is missing is a failure without words."""
    found = {result.call_id: result for result in results if not result.is_missing}
    missing = ToolResult("", "", "", is_error=True)
    return [
        AnsweredCall(call.name, call.arguments, result.content, result.is_error)
        for call in calls
        for result in (found.get(call.id, missing),)
    ]


def _add_note(messages: list[Message], begin: int, end: int, note: str) -> bool:
    """Add a note to the result that the model will read last; tell if there is one."""
    for place in range(end - 1, begin - 1, -1):
        result = _result_of(messages[place])
        if not result.is_missing:
            noted = replace(result, content=result.content + note)
            messages[place] = replace(messages[place], parts=(noted,))
            return True
    return False
