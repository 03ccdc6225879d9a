"""The client's numbered node types, and the reader of request nodes."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from byok.augment import blocks
from byok.augment.body import first_text, flag, integer, mapping, objects, text
from byok.augment.images import data_url_type, read_image
from byok.chat import ImagePart, Json, Part, TextPart
from byok.wire.json_body import write_json


class RequestNode(IntEnum):
    """Types of request nodes, which clients send."""

    TEXT = 0
    TOOL_RESULT = 1
    IMAGE = 2
    IMAGE_ID = 3
    IDE_STATE = 4
    EDIT_EVENTS = 5
    CHECKPOINT_REF = 6
    CHANGE_PERSONALITY = 7
    FILE = 8
    FILE_ID = 9
    HISTORY_SUMMARY = 10


class ResponseNode(IntEnum):
    """Types of response nodes that byok writes and reads back."""

    RAW_RESPONSE = 0
    MAIN_TEXT_FINISHED = 2
    TOOL_USE = 5
    TOOL_USE_START = 7
    THINKING = 8
    TOKEN_USAGE = 10


class ToolResultContent(IntEnum):
    """Types of the parts of a tool result."""

    TEXT = 1
    IMAGE = 2


@dataclass(frozen=True, slots=True)
class Result:
    """A tool's answer as the client recorded it; images come apart."""

    call_id: str
    content: str
    is_error: bool
    images: tuple[ImagePart, ...] = ()


@dataclass(frozen=True, slots=True)
class UserTurn:
    """One request of the user.

    Attributes:
        content: everything for the model, in its order.
        results: the results of tools.
        asks: whether there are words or images of the user, and not only context.
        summary: the payload of a history summary node.
        personality: the payload of a change-personality node.
        unknown_types: types of nodes that byok does not know.
        words: what the user wrote.
        before_summary: how many parts of the content precede the summary.
    """

    content: tuple[Part, ...] = ()
    results: tuple[Result, ...] = ()
    asks: bool = False
    summary: Json | None = None
    personality: Json | None = None
    unknown_types: tuple[int, ...] = ()
    words: str = ""
    before_summary: int = 0


CARRIERS = ("nodes", "structured_request_nodes", "request_nodes")


def request_nodes(body: Json) -> list[dict[str, Any]]:
    """Join the fields that carry request nodes, without duplicates, in `id` order."""
    carriers = [objects(body, name) for name in CARRIERS]
    found = [node for carrier in carriers for node in carrier]
    if len(found) < 2:
        return found
    if sum(map(bool, carriers)) > 1:
        found = list({write_json(node): node for node in found}.values())
    order = sorted(range(len(found)), key=lambda n: (integer(found[n], "id"), n))
    return [found[n] for n in order]


def read_result(node: Json) -> Result:
    """Read the payload of a tool result node; its content nodes win over `content`."""
    texts: list[str] = []
    images: list[ImagePart] = []
    for part in objects(node, "content_nodes"):
        match integer(part, "type"):
            case ToolResultContent.TEXT:
                texts.append(text(part, "text_content"))
            case ToolResultContent.IMAGE:
                image = read_image(mapping(part, "image_content"))
                if image is None:
                    texts.append("[an image that could not be read]")
                    continue
                images.append(image)
                texts.append(f"[image {len(images)} below]")
            case _:
                pass  # 0 is "unspecified" and holds nothing
    content = "\n".join(texts) if any(texts) else text(node, "content")
    return Result(
        text(node, "tool_use_id"), content, flag(node, "is_error"), tuple(images)
    )


def read_turn(body: Json, message: str) -> UserTurn:
    """Read the request of one exchange: its message and its nodes."""
    nodes = request_nodes(body)
    results = tuple(
        read_result(mapping(node, "tool_result_node"))
        for node in nodes
        if _type(node) == RequestNode.TOOL_RESULT
    )
    texts = [
        text(mapping(node, "text_node"), "content")
        for node in nodes
        if _type(node) == RequestNode.TEXT
    ]
    if is_placeholder(message) and results:
        message = ""
    first = next((t for t in texts if t.strip()), "")
    if message.strip() == first.strip():
        message = ""
    reader = _Reader(message)
    for node in nodes:
        reader.read(node, skip_placeholder=bool(results))
    return reader.turn(results)


def is_placeholder(message: str) -> bool:
    """Tell whether a message is only a placeholder for no words: "", "...", "---"."""
    bare = message.strip()
    return not bare or bare == "..." or (len(bare) <= 8 and set(bare) == {"-"})


class _Reader:
    """Reads the nodes of one request in their order."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._parts: list[Part] = []
        self._words: list[str] = []
        self._asks = False
        self._summary: Json | None = None
        self._before_summary = 0
        self._personality: Json | None = None
        self._unknown: list[int] = []

    def turn(self, results: tuple[Result, ...]) -> UserTurn:
        self._say_message()
        return UserTurn(
            tuple(self._parts),
            results,
            self._asks,
            self._summary,
            self._personality,
            tuple(self._unknown),
            "\n".join(self._words),
            self._before_summary,
        )

    def read(self, node: Json, *, skip_placeholder: bool) -> None:
        match _type(node):
            case RequestNode.TEXT:
                said = text(mapping(node, "text_node"), "content")
                if not (skip_placeholder and is_placeholder(said)):
                    self._say_message()
                    self._say(said)
            case RequestNode.TOOL_RESULT:
                pass  # read separately: results precede the words of their exchange
            case RequestNode.IMAGE:
                self._image(read_image(mapping(node, "image_node")))
            case RequestNode.FILE:
                self._file(mapping(node, "file_node"))
            case RequestNode.HISTORY_SUMMARY:
                self._summary = mapping(node, "history_summary_node")
                self._before_summary = len(self._parts)
                self._asks = True
            case RequestNode.CHANGE_PERSONALITY:
                self._personality = mapping(node, "change_personality_node")
            case (
                RequestNode.IDE_STATE
                | RequestNode.EDIT_EVENTS
                | RequestNode.IMAGE_ID
                | RequestNode.FILE_ID
                | RequestNode.CHECKPOINT_REF as kind
            ):
                self._context(_RENDER[kind](node))
            case other:
                self._unknown.append(other)

    def _say_message(self) -> None:
        message, self._message = self._message, ""
        self._say(message)

    def _say(self, said: str) -> None:
        if said.strip() and said.strip() not in self._words[-1:]:
            self._parts.append(TextPart(said))
            self._words.append(said.strip())
            self._asks = True

    def _context(self, block: str) -> None:
        if block:
            self._parts.append(TextPart(block))

    def _image(self, image: ImagePart | None) -> None:
        if image is None:
            self._context("[an image that could not be read]")
        else:
            self._parts.append(image)
        self._asks = True

    def _file(self, payload: Json) -> None:
        data = text(payload, "file_data")
        media_type = text(payload, "format").lower() or data_url_type(data)
        if media_type.startswith("image/"):
            self._image(read_image({"image_data": data, "format": media_type}))
        else:
            self._context(blocks.file(data, media_type))
            self._asks = True


_RENDER: dict[int, Callable[[Json], str]] = {
    RequestNode.IDE_STATE: lambda n: blocks.ide_state(mapping(n, "ide_state_node")),
    RequestNode.EDIT_EVENTS: lambda n: blocks.edit_events(
        mapping(n, "edit_events_node")
    ),
    RequestNode.IMAGE_ID: lambda n: blocks.marker(
        "image kept by the client", first_text(mapping(n, "image_id_node"), "image_id")
    ),
    RequestNode.FILE_ID: lambda n: blocks.marker(
        "file kept by the client",
        first_text(mapping(n, "file_id_node"), "file_name", "file_id"),
    ),
    RequestNode.CHECKPOINT_REF: lambda n: blocks.marker("checkpoint of the workspace"),
}


def _type(node: Json) -> int:
    return integer(node, "type", -1)
