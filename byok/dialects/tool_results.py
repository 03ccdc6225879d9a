"""Tool results where one is a string that may not be empty, as in Chat Completions.

An error is marked by words, and images move into the user message after all results of
the group.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from byok.chat import ImagePart, Message, Part, Role, TextPart, ToolResult

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
