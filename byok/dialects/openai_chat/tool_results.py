"""Results of tools as Chat Completions takes them: one text each, pictures apart.

A message of role `tool` holds one string that may not be empty. So an error is told in
words, and pictures go into the user's message behind all results of the group.
"""

from collections.abc import Iterable, Iterator

from byok.chat import ImagePart, Message, Part, Role, TextPart, ToolResult

NO_OUTPUT = "(no output)"
_ERROR_WORDS = ("error", "fail", "exception", "traceback", "fatal")


def result_text(result: ToolResult) -> str:
    """Write a result as one non-empty string that tells an error."""
    content = result.content if result.content.strip() else NO_OUTPUT
    if result.is_error and not content.lstrip().lower().startswith(_ERROR_WORDS):
        return f"ERROR: {content}"
    return content


def move_pictures(messages: Iterable[Message]) -> Iterator[Message]:
    """Put the pictures of results into the user's message that follows them.

    Where no such message follows, one with the pictures alone is added.
    """
    pictures: list[Part] = []
    for message in messages:
        if message.role is Role.TOOL:
            for part in message.parts:
                pictures += _with_captions(part) if isinstance(part, ToolResult) else ()
        elif pictures and message.role is Role.USER:
            message = Message(Role.USER, (*pictures, *message.parts))
            pictures = []
        elif pictures:
            yield Message(Role.USER, tuple(pictures))
            pictures = []
        yield message
    if pictures:
        yield Message(Role.USER, tuple(pictures))


def _with_captions(result: ToolResult) -> Iterator[TextPart | ImagePart]:
    for number, image in enumerate(result.images, 1):
        whose = f"{result.name} ({result.call_id})"
        yield TextPart(f"Image {number}, output of {whose}:")
        yield image
