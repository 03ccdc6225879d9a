"""Code retrieval for chats: build the question, and insert the code that was found.

The code goes before the question and never into the system message: everything above
the last message stays the same byte for byte, so that prompt caches hit.
"""

from dataclasses import replace

from byok.augment.blobs import attached_names, blob_names
from byok.augment.body import flag
from byok.augment.system import is_agent
from byok.chat import ChatRequest, ContextPart, Json, Role
from byok.code_query import CodeQuestion


def code_question(body: Json, chat: ChatRequest) -> CodeQuestion | None:
    """Return the question of a chat and its code; None if no code is to be added.

    Agents search for themselves, and a turn with tool results continues with the code
    that was found before.
    """
    if chat.silent or not chat.question or is_agent(body):
        return None
    if flag(body, "disable_retrieval"):
        return None
    found = CodeQuestion(chat.question, blob_names(body), attached_names(body))
    return None if found.blobs.is_empty and not found.guided else found


def with_passages(chat: ChatRequest, text: str) -> ChatRequest:
    """Insert code before the words of the last message."""
    if not text or not chat.messages or chat.messages[-1].role is not Role.USER:
        return chat
    *before, last = chat.messages
    asked = replace(last, parts=(ContextPart(text), *last.parts))
    return replace(chat, messages=(*before, asked))
