"""Loops in a client's history: found, and noted behind the results that show them."""

from collections.abc import Sequence
from dataclasses import replace

from byok.augment.history import HistoryItem
from byok.augment.nodes import UserTurn
from byok.chat import ToolCall, ToolResult
from byok.loops.calls import AnsweredCall
from byok.loops.limits import LoopLimits
from byok.loops.watch import LoopWatch
from byok.loops.words import Loop

_MISSING = ToolResult("", "", "", is_error=True)


def note_loops(
    exchanges: Sequence[HistoryItem], current: UserTurn, limits: LoopLimits
) -> tuple[list[HistoryItem], UserTurn, Loop | None]:
    """Return the conversation with notes for the model, and the loop it is in now.

    A note stands where the loop showed, and stays there in later requests. Where the
    user has spoken since, there is no loop, and no note is needed.
    """
    if not limits.on:
        return [*exchanges], current, None
    watch, turns = LoopWatch(limits), list[UserTurn]()
    calls: tuple[ToolCall, ...] = ()  # of the reply before
    loop: Loop | None = None
    for turn, next_calls in [
        *((exchange.turn, exchange.reply.calls) for exchange in exchanges),
        (current, ()),
    ]:
        loop = None
        if turn.asks:
            watch.begin_turn()
        elif calls:
            loop = watch.add_step(_pair(calls, turn.results))
            turn = _with_note(turn, calls, loop.for_model) if loop else turn
        turns.append(turn)
        calls = next_calls
    *past, current = turns
    noted = [
        HistoryItem(turn, exchange.reply)
        for turn, exchange in zip(past, exchanges, strict=True)
    ]
    return noted, current, loop


def _pair(
    calls: Sequence[ToolCall], results: Sequence[ToolResult]
) -> list[AnsweredCall]:
    """Pair calls with results; a lone result without an id is that of a lone call."""
    found = {result.call_id: result for result in reversed(results)}
    if len(calls) == len(results) == 1 and not results[0].call_id:
        found[calls[0].id] = results[0]
    return [
        AnsweredCall(call.name, call.arguments, result.content, result.is_error)
        for call in calls
        for result in (found.get(call.id, _MISSING),)
    ]


def _with_note(turn: UserTurn, calls: Sequence[ToolCall], note: str) -> UserTurn:
    """Add a note to the result that the model will read last."""
    ids = [call.id for call in calls]
    order = {call_id: place for place, call_id in enumerate(ids)}
    if not turn.results:
        return turn
    places = range(len(turn.results))
    last = max(places, key=lambda n: (order.get(turn.results[n].call_id, -1), -n))
    results = [*turn.results]
    noted = replace(results[last], content=results[last].content + note)
    results[last] = noted
    return replace(turn, results=tuple(results))
