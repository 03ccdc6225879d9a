"""Messages API: encoding a conversation as a system prompt and messages of blocks.

Rules of the API (its reference, "Messages" and "Handle tool calls"): roles alternate;
all results of a turn are in one user message, directly after the calls and before any
other block; no text is blank; images are JPEG, PNG, GIF or WebP; thinking blocks come
back unchanged.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from msgspec import Struct, field

from byok.core.chat import (
    ImagePart,
    Json,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    data_of,
)
from byok.dialects.cache_points import (
    FIELD,
    ends_of_turns,
    mark_end,
    mark_messages,
    point,
)
from byok.dialects.remedies import Body
from byok.dialects.safe_names import NO_OUTPUT, read_arguments

Block: TypeAlias = dict[str, Any]

_LOOKBACK = 20  # blocks
_NO_WORDS = "(no text)"
_SEPARATOR = "\n\n"  # between texts of a user or a system prompt
# The fields of reasoning blocks to send back; the last one must not be empty.
_SIGNED_FIELDS = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}


class Conversation(Struct):
    """An encoded conversation; `system` are the blocks of the system prompt."""

    system: list[Block] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)

    def add_all(self, messages: Iterable[Message]) -> None:
        """Add messages."""
        for message in messages:
            match message.role:
                case Role.SYSTEM:
                    self.system += _texts(message.parts)
                case Role.ASSISTANT:
                    self._add("assistant", self._assistant(message.parts))
                case Role.USER:
                    parts = _join_texts(message.parts, _SEPARATOR)
                    self._add("user", [*map(_user_block, parts)])
                case Role.TOOL:
                    self._add("user", self._results(message.parts))
        if not self.messages:
            self._add("user", [_text(_NO_WORDS)])
        blocks = self.messages[-1]["content"]
        if self.messages[-1]["role"] == "assistant" and blocks[-1]["type"] == "text":
            # The API refuses white space at the end of a prefilled answer.
            blocks[-1] = _text(blocks[-1]["text"].rstrip())

    def _add(self, role: str, blocks: list[Block]) -> None:
        if blocks and self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += blocks
        elif blocks:
            self.messages.append({"role": role, "content": blocks})

    def _assistant(self, parts: Iterable[Part]) -> list[Block]:
        blocks: list[Block] = []
        for part in _join_texts(parts):
            match part:
                case ThinkingPart():
                    blocks += _thinking(part)
                case ToolCall(id=call_id, name=name, arguments=arguments):
                    call = {"type": "tool_use", "id": call_id, "name": name}
                    blocks.append({**call, "input": read_arguments(arguments)})
                case TextPart(text=text):
                    blocks.append(_text(text))
                case _:
                    pass  # an assistant has no pictures and no results
        return blocks

    def _results(self, parts: Iterable[Part]) -> list[Block]:
        blocks: list[Block] = []
        for part in parts:
            if isinstance(part, ToolResult):
                # The API refuses errors without content.
                text = part.content if part.content.strip() else NO_OUTPUT
                images = [*map(_image, part.images)]
                block: Block = {"type": "tool_result", "tool_use_id": part.call_id}
                block["content"] = [_text(text), *images] if images else text
                blocks.append(block | ({"is_error": True} if part.is_error else {}))
        return blocks


def _texts(parts: Iterable[Part]) -> list[Block]:
    joined = _join_texts(parts, _SEPARATOR)
    return [_text(part.text) for part in joined if isinstance(part, TextPart)]


def _join_texts(parts: Iterable[Part], separator: str = "") -> Iterator[Part]:
    """Join adjacent texts, and drop blank ones.

    Without a separator, blank pieces of a text that is not blank are kept.
    """
    pieces: list[str] = []
    for part in parts:
        if isinstance(part, TextPart):
            pieces += [part.text] if part.text.strip() or not separator else []
            continue
        if (text := separator.join(pieces)).strip():
            yield TextPart(text)
        pieces = []
        yield part
    if (text := separator.join(pieces)).strip():
        yield TextPart(text)


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _user_block(part: Part) -> Block:
    match part:
        case TextPart(text=text):
            return _text(text)
        case ImagePart():
            return _image(part)
        case _:
            return _text(_NO_WORDS)


def _image(image: ImagePart) -> Block:
    source = {"media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": {"type": "base64", **source}}


def _thinking(part: ThinkingPart) -> list[Block]:
    """Return the block of reasoning that the model wrote, unchanged, if it is valid.

    The data come from the client and may be damaged: an invalid block is dropped.
    """
    block = data_of(part).get("block")
    if not isinstance(block, dict):
        return []
    kind = block.get("type")
    names = _SIGNED_FIELDS.get(kind, ()) if isinstance(kind, str) else ()
    fields = {name: block[name] for name in names if name in block}
    is_whole = len(fields) == len(names) and bool(names) and fields[names[-1]]
    if not is_whole or not all(isinstance(value, str) for value in fields.values()):
        return []
    return [{"type": kind, **fields}]


def ask_for_cache(body: Json, is_long: bool = False) -> Body:
    """Set the cache points of a body that has none; the API allows four.

    The first point is the field at the top. The second one is after the tools and the
    system prompt, which other conversations share. From a point, the API looks back 20
    blocks for a prefix in the cache. So a turn that added more blocks gets a third
    point at its beginning, where the previous request ended.
    """
    mark = point(is_long=is_long)
    # The system prompt comes after the tools.
    body = mark_end(body, "system" if body.get("system") else "tools", mark)
    messages = body["messages"]
    previous = ends_of_turns(messages)[-2:-1]  # the index where the last request ended
    new = messages[previous[0] + 1 :] if previous else ()
    if sum(len(message["content"]) for message in new) >= _LOOKBACK:
        body = mark_messages(body, previous, mark)
    return {**body, FIELD: mark}
