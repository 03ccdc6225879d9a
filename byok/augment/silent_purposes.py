"""What a silent chat is for: newer clients do jobs of their own in them."""

from byok.augment.body import flag, mapping, text
from byok.augment.nodes import request_nodes
from byok.chat import Json
from byok.purposes import Purpose

_ENHANCED = "augment-enhanced-prompt"  # the tag that such a job asks to write


def purpose_of_chat(body: Json) -> Purpose:
    """Tell a chat of the user from a prompt to be said better, and from other jobs."""
    if not flag(body, "silent"):
        return Purpose.CHAT
    said = [text(mapping(n, "text_node"), "content") for n in request_nodes(body)]
    enhances = any(_ENHANCED in words for words in (text(body, "message"), *said))
    return Purpose.ENHANCE if enhances else Purpose.SUMMARY
