"""Parts of requests that several dialects share: signatures, cache keys, headers."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from byok.chat import ChatRequest, ImagePart, Message, Part, Role, TextPart, ToolResult

NO_OUTPUT = "(no output)"
_ERROR_WORDS = ("error", "fail", "exception", "traceback", "fatal")


def result_text(result: ToolResult) -> str:
    """Return a result as one non-empty string that marks an error."""
    content = result.content if result.content.strip() else NO_OUTPUT
    if result.is_error and not content.lstrip().lower().startswith(_ERROR_WORDS):
        return f"ERROR: {content}"
    return content


def move_images(messages: Iterable[Message]) -> Iterator[Message]:
    """Move the images of results into the user message that follows them.

    If none follows, a user message with the images alone is inserted.
    """
    images: list[Part] = []
    for message in messages:
        if message.role is Role.TOOL:
            for part in message.parts:
                images += _with_captions(part) if isinstance(part, ToolResult) else ()
            message = Message(Role.TOOL, tuple(map(_without_images, message.parts)))
        elif images and message.role is Role.USER:
            message = Message(Role.USER, (*images, *message.parts))
            images = []
        elif images:
            yield Message(Role.USER, tuple(images))
            images = []
        yield message
    if images:
        yield Message(Role.USER, tuple(images))


def _without_images(part: Part) -> Part:
    return replace(part, images=()) if isinstance(part, ToolResult) else part


def _with_captions(result: ToolResult) -> Iterator[TextPart | ImagePart]:
    for number, image in enumerate(result.images, 1):
        whose = f"{result.name} ({result.call_id})"
        yield TextPart(f"Image {number}, output of {whose}:")
        yield image


# Gemini's thought signatures: which models want them, and what replaces a missing one.
#
# Gemini 3 refuses conversations in which the first call of a step has no signature.
# Calls of another model, or whose signature the client lost, get the value that Google
# documents as not checked (Gemini API, Thought Signatures).


NOT_CHECKED = "skip_thought_signature_validator"
_ASKED = re.compile(r"gemini(?!-[12]\b)")


def wants_signatures(model: str) -> bool:
    """Tell whether a model refuses tool calls without a signature."""
    return bool(_ASKED.search(model.lower()))


# The key that routes the requests of one conversation to the same prompt cache.


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


# Headers of OpenAI's APIs, and of those that are compatible.


def openai_headers(key: str, auth_header: str) -> Mapping[str, str]:
    """Return the headers of every request; `Authorization` takes `Bearer <key>`."""
    headers = {"Accept": "text/event-stream, application/json"}
    if key:
        is_bearer = auth_header == "Authorization"
        headers[auth_header] = f"Bearer {key}" if is_bearer else key
    return headers
