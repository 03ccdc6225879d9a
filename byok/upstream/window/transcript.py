"""Render a conversation as plain text, as the input or the substitute of a summary."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from byok.core.chat import (
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    calls_of,
)
from byok.core.escapes import fair_share, truncate_middle
from byok.core.prompts.prompt_set import PromptSet
from byok.core.routing import SUMMARY_HOLDS

_SUMMARY = "[The earlier part of this conversation no longer fits. A summary of it:]"
_TASK = "[The user's request then, word for word:]"
_MAX_TEXT_CHARS = 4_000
_MAX_RESULT_CHARS = 1_200
_MIN_ENTRY_CHARS = 120
_MAX_USER_LINE_CHARS = 300
_CHARS_A_WORD = 7
_STEPS_LEFT_OUT = "(Some steps are left out here.)"


def summary_message(summary: str, task: Sequence[Part]) -> Message:
    """Return a user message that replaces the beginning of a conversation.

    It has the summary, and the `task`, which is the user's request at that time.
    """
    text = f"{_SUMMARY}\n{summary.strip()}"
    if task:
        text += f"\n\n{_TASK}"
    return Message(Role.USER, (TextPart(text), *task))


def summary_of(message: Message) -> str:
    """Return the summary in a summary message, "" for any other message."""
    first = message.parts[0] if message.parts else None
    if message.role is not Role.USER or not isinstance(first, TextPart):
        return ""
    if not first.text.startswith(_SUMMARY):
        return ""
    return first.text.removeprefix(_SUMMARY).removesuffix(_TASK).strip()


def without_summary(message: Message) -> tuple[Part, ...]:
    """Return the parts of a message that the user wrote."""
    return message.parts[1:] if summary_of(message) else message.parts


def transcript(messages: Iterable[Message], longest: int) -> str:
    """Return a text of all messages and calls, in at most `longest` characters.

    If even short entries are too many, those in the middle are left out.
    """
    entries = [entry for m in messages for entry in _entries(m)]
    max_entries = max(longest // _MIN_ENTRY_CHARS, 4)
    if len(entries) > max_entries:
        first = max_entries // 4
        entries[first : len(entries) - (max_entries - first - 1)] = [_STEPS_LEFT_OUT]
    cap = fair_share([len(e) + 1 for e in entries], longest)
    return "\n".join(truncate_middle(entry, cap - 1) for entry in entries)


def instruction(longest: int, prompts: PromptSet) -> str:
    """Return the system prompt for the model that writes the summary."""
    words = str(longest // _CHARS_A_WORD)
    values = {"holds": SUMMARY_HOLDS, "words": words}
    return prompts.render("summary", values=values).text


def outline(messages: Sequence[Message], longest: int) -> str:
    """Return a summary made without a model: the user's words, the tools that ran."""
    earlier = [summary for m in messages if (summary := summary_of(m))]
    user_lines = [f"- {line}" for m in messages if (line := _user_line(m))]
    calls = Counter(call.name for message in messages for call in calls_of(message))
    tools = ", ".join(f"{name} ({n})" for name, n in calls.most_common())
    parts = [
        *earlier[-1:],
        "The user said:\n" + "\n".join(user_lines) if user_lines else "",
        f"The assistant called these tools: {tools}." if tools else "",
    ]
    parts = [part for part in parts if part]
    cap = fair_share([len(part) + 2 for part in parts], longest)
    return "\n\n".join(truncate_middle(part, cap - 2) for part in parts)


def _user_line(message: Message) -> str:
    """Return the text of a user message as one short line, "" for other messages."""
    if message.role is not Role.USER:
        return ""
    texts = (p.text for p in without_summary(message) if isinstance(p, TextPart))
    return truncate_middle(" ".join(" ".join(texts).split()), _MAX_USER_LINE_CHARS)


def _entries(message: Message) -> Iterator[str]:
    speaker = "User" if message.role is Role.USER else "Assistant"
    if summary := summary_of(message):
        yield f"Summary of what was before: {summary}"
    for part in without_summary(message):
        if entry := _entry(part, speaker):
            yield entry


def _entry(part: Part, speaker: str) -> str:
    match part:
        case TextPart(text=text):
            return f"{speaker}: {truncate_middle(text, _MAX_TEXT_CHARS)}"
        case ToolCall(name=name, arguments=arguments):
            shortened = truncate_middle(arguments, _MAX_RESULT_CHARS)
            return f"Assistant calls {name}: {shortened}"
        case ToolResult(name=name, content=content):
            kind = "Error of" if part.is_error else "Result of"
            picture = " (with a picture)" if part.images else ""
            shortened = truncate_middle(content, _MAX_RESULT_CHARS)
            return f"{kind} {name}{picture}: {shortened}"
        case ImagePart():
            return f"{speaker}: (a picture)"
        case ThinkingPart():
            return ""
