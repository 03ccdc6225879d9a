"""Which conversation a request belongs to, and where in it."""

from dataclasses import dataclass

from byok.augment.body import first_text, flag, objects
from byok.chat import Json


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request stands: `after` names what was said before it, "" for nothing."""

    conversation: str
    after: str = ""

    def takes_over(self, older: "Place") -> bool:
        """Tell whether this request makes an older one of its conversation useless.

        Only one answer can follow what was said. The first turn tells nothing: an SDK
        asks independent questions in one conversation, each without a history.
        """
        return bool(self.after) and self.after == older.after


def place_of(body: Json) -> Place | None:
    """Return the place of a chat; None where the order of requests is of no matter.

    Silent jobs are no turns of the conversation they are about.
    """
    conversation = first_text(body, "conversation_id")
    if not conversation or flag(body, "silent"):
        return None
    history = objects(body, "chat_history")
    after = f"{len(history)} {first_text(history[-1], 'request_id')}" if history else ""
    return Place(conversation, after)
