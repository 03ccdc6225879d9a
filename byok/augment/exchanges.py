"""Read the history: each item is a user turn and the assistant's reply to it."""

from dataclasses import dataclass

from byok.augment.body import objects, text
from byok.augment.nodes import UserTurn, read_turn
from byok.augment.recorded_reply import RecordedReply, read_reply
from byok.chat import Json


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """One exchange in a client's history: a user turn and the assistant's answer."""

    turn: UserTurn
    reply: RecordedReply


def read_exchanges(body: Json) -> list[HistoryItem]:
    """Read `chat_history`, oldest first."""
    return [read_exchange(item) for item in objects(body, "chat_history")]


def read_exchange(item: Json) -> HistoryItem:
    """Read one history item."""
    turn = read_turn(item, text(item, "request_message"))
    return HistoryItem(turn, read_reply(item))
