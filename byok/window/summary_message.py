"""The message that replaces the beginning of a conversation."""

from collections.abc import Sequence

from byok.chat import Message, Part, Role, TextPart

_SUMMARY = "[The earlier part of this conversation no longer fits. A summary of it:]"
_TASK = "[The user's request then, word for word:]"


def summary_message(summary: str, task: Sequence[Part]) -> Message:
    """Return a user message with the summary and the user's request at that time."""
    text = f"{_SUMMARY}\n{summary.strip()}"
    if task:
        text += f"\n\n{_TASK}"
    return Message(Role.USER, (TextPart(text), *task))


def summary_of(message: Message) -> str:
    """Return the summary in such a message, "" for any other message."""
    first = message.parts[0] if message.parts else None
    if message.role is not Role.USER or not isinstance(first, TextPart):
        return ""
    if not first.text.startswith(_SUMMARY):
        return ""
    return first.text.removeprefix(_SUMMARY).removesuffix(_TASK).strip()


def without_summary(message: Message) -> tuple[Part, ...]:
    """Return the parts of a message that the user wrote."""
    return message.parts[1:] if summary_of(message) else message.parts
