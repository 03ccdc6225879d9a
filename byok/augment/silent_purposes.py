"""The purpose of a silent chat: newer clients use them for background jobs."""

from byok.augment.body import flag, mapping, text
from byok.augment.nodes import request_nodes
from byok.chat import Json
from byok.purposes import Purpose

_ENHANCED = "augment-enhanced-prompt"  # the tag that such a job asks to write


def purpose_of_chat(body: Json) -> Purpose:
    """Return whether a chat is the user's, a prompt to enhance, or another job."""
    if not flag(body, "silent"):
        return Purpose.CHAT
    said = [text(mapping(n, "text_node"), "content") for n in request_nodes(body)]
    enhances = any(_ENHANCED in words for words in (text(body, "message"), *said))
    return Purpose.ENHANCE if enhances else Purpose.SUMMARY
