"""The key that routes the requests of one conversation to the same prompt cache."""

import hashlib

from byok.chat import ChatRequest

_LENGTH = 32  # characters; OpenAI and xAI accept at least 64


def prompt_cache_key(chat: ChatRequest) -> str:
    """Return a key that stays the same in a conversation, "" where it has no id.

    It is a digest, so that the client's own key or id stays on this machine.
    """
    name = chat.cache_key or chat.conversation
    if not name:
        return ""
    raw = name.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"prompt cache:" + raw).hexdigest()[:_LENGTH]
