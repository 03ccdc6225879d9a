"""Code that a chat is about: what the client names of it, and where it is put.

It goes before the question, never into the system message: what stands above the last
message is the same, byte for byte, as in the turn before, so that prompt caches hit.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from byok.augment.blobs import BlobNames, blob_names, guided_names
from byok.augment.body import flag
from byok.augment.system import is_agent
from byok.chat import ChatRequest, ContextPart, Json, Role


class FileChunk(NamedTuple):
    """Characters of a client's file that a model was shown; `end` is exclusive.

    They are counted as code points of the file as the client holds it.
    """

    blob_name: str
    start: int
    end: int

    @property
    def fields(self) -> dict[str, Any]:
        """As the client reads it."""
        return {
            "char_start": self.start,
            "char_end": self.end,
            "blob_name": self.blob_name,
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question about code; `guided` are the blobs that the user attached to it."""

    question: str
    blobs: BlobNames
    guided: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Passages:
    """The code that goes into a chat, and what the client should know of its blobs."""

    text: str = ""
    chunks: tuple[FileChunk, ...] = ()
    unknown: tuple[str, ...] = ()
    checkpoint_found: bool = True


def wanted(body: Json, chat: ChatRequest) -> Wanted | None:
    """Return what a chat asks about which code; None where none shall be added.

    Agents search for themselves, and a turn that brings tool results goes on with what
    was found already.
    """
    if chat.silent or not chat.question or is_agent(body):
        return None
    if flag(body, "disable_retrieval"):
        return None
    found = Wanted(chat.question, blob_names(body), guided_names(body))
    return None if found.blobs.is_empty and not found.guided else found


def with_passages(chat: ChatRequest, text: str) -> ChatRequest:
    """Put code before the words of the last message."""
    if not text or not chat.messages or chat.messages[-1].role is not Role.USER:
        return chat
    *before, last = chat.messages
    asked = replace(last, parts=(ContextPart(text), *last.parts))
    return replace(chat, messages=(*before, asked))
