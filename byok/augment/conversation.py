"""Which conversation a request belongs to, and its position in it."""

from dataclasses import dataclass

from byok.augment.body import first_text, flag, objects
from byok.chat import Json


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a request; `after` identifies what was said before it.

    Only one answer can follow: of two requests for one position the older one is
    obsolete.
    """

    conversation: str
    after: str


def place_of(body: Json) -> Place | None:
    """Return the position of a chat; None if the order of requests does not matter.

    Silent jobs are not turns of the conversation. Nor is the order known of requests
    without a history: an SDK asks independent questions in one conversation, each
    without a history.
    """
    conversation = first_text(body, "conversation_id")
    history = objects(body, "chat_history")
    if not conversation or not history or flag(body, "silent"):
        return None
    return Place(
        conversation, f"{len(history)} {first_text(history[-1], 'request_id')}"
    )
