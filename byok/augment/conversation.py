"""Which conversation a request belongs to, and where in it."""

from dataclasses import dataclass

from byok.augment.body import first_text, flag, objects
from byok.chat import Json


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request stands; `after` names what was said before it.

    Only one answer can follow that: of two requests for one place the older is useless.
    """

    conversation: str
    after: str


def place_of(body: Json) -> Place | None:
    """Return the place of a chat; None where the order of requests is of no matter.

    Silent jobs are no turns of the conversation they are about. A request without a
    history tells nothing of its order: an SDK asks independent questions in one
    conversation, each without a history.
    """
    conversation = first_text(body, "conversation_id")
    history = objects(body, "chat_history")
    if not conversation or not history or flag(body, "silent"):
        return None
    return Place(
        conversation, f"{len(history)} {first_text(history[-1], 'request_id')}"
    )
