"""Changes to a conversation that a model refuses: fewer tools, text for calls.

They are made on the neutral request, so that they are the same in every dialect.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from byok.chat import (
    ChatRequest,
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
)
from byok.dialects.safe_names import Aliases, IdRule, NameRule
from byok.dialects.tool_results import move_images, result_text
from byok.truncate import truncate_middle

NO_PICTURE = "[a picture stood here; this model sees none]"
_GO_ON = "Understood."
_NO_WORDS = "(no text)"
# For the system prompt, so that the model does not write such blocks itself.
_ABOUT_RECORDS = (
    "Blocks headed [earlier tool call] are records of the past, "
    "not a format to imitate."
)


def has_calls(chat: ChatRequest) -> bool:
    """Tell whether the history has tool calls or results."""
    kinds = (ToolCall, ToolResult)
    return any(isinstance(part, kinds) for m in chat.messages for part in m.parts)


def pictures_of(message: Message) -> Iterator[ImagePart]:
    """Yield the pictures of a message, also those in results."""
    for part in message.parts:
        if isinstance(part, ImagePart):
            yield part
        elif isinstance(part, ToolResult):
            yield from part.images


def shows_picture(chat: ChatRequest) -> bool:
    """Tell whether the newest turn has a picture."""
    for message in reversed(chat.messages):
        if message.role is Role.ASSISTANT:
            break
        if any(True for _ in pictures_of(message)):
            return True
    return False


def offer_tools(chat: ChatRequest, tools: Sequence[ToolDefinition]) -> ChatRequest:
    """Offer these tools; a demand for another one is left out."""
    choice = chat.tool_choice
    if choice.name and choice.name not in {tool.name for tool in tools}:
        choice = ToolChoice()
    return replace(chat, tools=tuple(tools), tool_choice=choice)


def keep_most_tools(chat: ChatRequest, most: int) -> ChatRequest:
    """Offer at most so many tools, in their order; tools in the history come first.

    A tool that was called stays offered, so that the selection is stable from turn to
    turn.
    """
    if len(chat.tools) <= most:
        return chat
    called = {p.name for m in chat.messages for p in m.parts if isinstance(p, ToolCall)}
    ranked = sorted(chat.tools, key=lambda tool: tool.name not in called)[:most]
    kept = {tool.name for tool in ranked}
    return offer_tools(chat, [tool for tool in chat.tools if tool.name in kept])


def shorten_descriptions(chat: ChatRequest, longest: int) -> ChatRequest:
    """Truncate the descriptions of tools, not those of their parameters."""

    def shorten(tool: ToolDefinition) -> ToolDefinition:
        if len(tool.description) <= longest:
            return tool
        short = truncate_middle(tool.description, longest)[:longest]
        return replace(tool, description=short)

    return offer_tools(chat, [*map(shorten, chat.tools)])


def write_calls_as_text(chat: ChatRequest) -> ChatRequest:
    """Move tool calls and results into the user's messages, marked as records.

    In the assistant's messages they would be an example for the model to imitate.
    Reasoning goes, too: what it led to is no longer there, and some APIs check that.
    """
    if not has_calls(chat):
        return chat
    calls: dict[str, ToolCall] = {}
    messages: list[Message] = []
    for message in chat.messages:
        parts: list[Part] = []
        for part in message.parts:
            match part:
                case ToolCall():
                    calls[part.id] = part
                case ToolResult():
                    parts += (_record(part, calls.get(part.call_id)), *part.images)
                case ThinkingPart():
                    pass
                case _:
                    parts.append(part)
        role = Role.USER if message.role is Role.TOOL else message.role
        if parts:
            messages.append(Message(role, tuple(parts)))
    about = Message(Role.SYSTEM, (TextPart(_ABOUT_RECORDS),))
    place = 1 if messages and messages[0].role is Role.SYSTEM else 0
    messages.insert(place, about)
    return replace(chat, messages=join_messages(messages))


def write_pictures_as_text(chat: ChatRequest) -> ChatRequest:
    """Put a sentence in the place of each picture, and below a result with some."""
    return _replace_pictures(chat, lambda _: True, NO_PICTURE)


def write_picture_as_text(chat: ChatRequest, digest: str, words: str) -> ChatRequest:
    """Put words in the place of one picture wherever it is, known by its digest."""
    return _replace_pictures(
        chat, lambda image: digest_of_picture(image.data) == digest, words
    )


def digest_of_picture(data: str) -> str:
    """Return a digest of a picture in base64."""
    return hashlib.blake2b(data.encode(), digest_size=8).hexdigest()


def alternate_roles(chat: ChatRequest) -> ChatRequest:
    """Let the user and the assistant take turns, beginning with the user.

    Pictures of results become messages of the user, and so do system messages that are
    not at the beginning. Where the user speaks directly after a result, as when a tool
    was interrupted, a word of the assistant is put between them.
    """
    messages: list[Message] = []
    for message in join_messages(_system_first(move_images(chat.messages))):
        before = messages[-1].role if messages else Role.SYSTEM
        if message.role is Role.USER and before is Role.TOOL:
            messages.append(Message(Role.ASSISTANT, (TextPart(_GO_ON),)))
        elif message.role is Role.ASSISTANT and before is Role.SYSTEM:
            messages.append(Message(Role.USER, (TextPart(_NO_WORDS),)))
        messages.append(message)
    return replace(chat, messages=tuple(messages))


def split_parallel_calls(chat: ChatRequest) -> ChatRequest:
    """Let the assistant call one tool at a time: each result follows its call."""
    messages: list[Message] = []
    waiting: dict[str, Message] = {}  # calls of the latest turn that are not sent yet
    for message in chat.messages:
        results = (p.call_id for p in message.parts if isinstance(p, ToolResult))
        if call := waiting.pop(next(results, ""), None):
            messages.append(call)
        calls = [p for p in message.parts if isinstance(p, ToolCall)]
        for later in calls[1:]:
            waiting[later.id] = Message(Role.ASSISTANT, (later,))
        kept = tuple(part for part in message.parts if part not in calls[1:])
        messages.append(Message(message.role, kept))
    return replace(chat, messages=tuple(messages))


def put_system_into_question(chat: ChatRequest) -> ChatRequest:
    """Let the system message be the beginning of the user's first message."""
    first, *rest = chat.messages or (Message(Role.USER, ()),)
    if first.role is not Role.SYSTEM:
        return chat
    messages = join_messages((Message(Role.USER, first.parts), *rest))
    return replace(chat, messages=messages)


def rename_tools(chat: ChatRequest, rule: NameRule) -> ChatRequest:
    """Give tools names that fit a rule, in the offer and in the history."""
    names = Aliases(rule.spell)
    tools = tuple(replace(tool, name=names.alias(tool.name)) for tool in chat.tools)

    def rename(part: Part) -> Part:
        if isinstance(part, ToolCall | ToolResult):
            return replace(part, name=names.alias(part.name))
        return part

    messages = (Message(m.role, tuple(map(rename, m.parts))) for m in chat.messages)
    choice = chat.tool_choice
    if choice.name:
        choice = replace(choice, name=names.alias(choice.name))
    return replace(chat, tools=tools, messages=tuple(messages), tool_choice=choice)


def names_of_tools(chat: ChatRequest) -> list[str]:
    """Return the names of the tools offered, called and answered, in their order."""
    parts = (part for message in chat.messages for part in message.parts)
    called = (p.name for p in parts if isinstance(p, ToolCall | ToolResult))
    return [*(tool.name for tool in chat.tools), *called]


def spell_call_ids(chat: ChatRequest, rule: IdRule) -> ChatRequest:
    """Give calls and results ids that fit a rule; the same ones in every request."""
    ids = Aliases(rule.spell)

    def spell(part: Part) -> Part:
        match part:
            case ToolCall():
                return replace(part, id=ids.alias(part.id))
            case ToolResult():
                return replace(part, call_id=ids.alias(part.call_id))
            case _:
                return part

    messages = (Message(m.role, tuple(map(spell, m.parts))) for m in chat.messages)
    return replace(chat, messages=tuple(messages))


def drop_beside_calls(
    chat: ChatRequest, kind: type[TextPart] | type[ThinkingPart]
) -> ChatRequest:
    """Leave out the texts that stand beside tool calls, or the reasoning beside both.

    Reasoning stays in a message that has calls but no text.
    """

    def drop(message: Message) -> Message:
        kinds = {type(part) for part in message.parts if _says_something(part)}
        wanted = {ToolCall, TextPart} if kind is ThinkingPart else {ToolCall}
        if not wanted <= kinds:
            return message
        kept = (part for part in message.parts if not isinstance(part, kind))
        return Message(message.role, tuple(kept))

    return replace(chat, messages=tuple(map(drop, chat.messages)))


def join_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join messages of one role in a row, except results, with a blank line between."""
    joined: list[Message] = []
    for message in messages:
        role = message.role
        if joined and joined[-1].role is role and role is not Role.TOOL:
            before = joined.pop().parts
            message = Message(role, _join_parts(before, message.parts))
        joined.append(message)
    return tuple(joined)


def _system_first(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages; system messages behind others are the user's words."""
    is_first = True
    for message in messages:
        is_first = is_first and message.role is Role.SYSTEM
        is_late = message.role is Role.SYSTEM and not is_first
        yield Message(Role.USER, message.parts) if is_late else message


def _says_something(part: Part) -> bool:
    return not isinstance(part, TextPart) or bool(part.text.strip())


def _record(result: ToolResult, call: ToolCall | None) -> TextPart:
    arguments, text = call.arguments if call else "", result_text(result)
    return TextPart(f"[earlier tool call]\n{result.name} {arguments}\nresult:\n{text}")


def _replace_pictures(
    chat: ChatRequest, is_meant: Callable[[ImagePart], bool], words: str
) -> ChatRequest:
    def replace_in(message: Message) -> Message:
        parts: tuple[Part, ...] = ()
        for part in message.parts:
            match part:
                case ImagePart() if is_meant(part):
                    parts = _join_parts(parts, (TextPart(words),))
                case ToolResult(images=images):
                    kept = tuple(image for image in images if not is_meant(image))
                    sentences = [words] * (len(images) - len(kept))
                    texts = filter(None, (part.content, *sentences))
                    content = "\n\n".join(texts) if sentences else part.content
                    parts = (*parts, replace(part, content=content, images=kept))
                case _:
                    parts = _join_parts(parts, (part,))
        return Message(message.role, parts)

    messages = [
        replace_in(message) if any(map(is_meant, pictures_of(message))) else message
        for message in chat.messages
    ]
    return replace(chat, messages=tuple(messages))


def _join_parts(before: tuple[Part, ...], after: tuple[Part, ...]) -> tuple[Part, ...]:
    """Join parts, with a blank line between a text and another one behind it."""
    match before, after:
        case (*first, TextPart(text=one)), (TextPart(text=other), *rest):
            return (*first, TextPart(f"{one}\n\n{other}"), *rest)
        case _:
            return (*before, *after)
