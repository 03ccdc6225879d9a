"""The client's numbered types of nodes, and the reader of request nodes."""

import base64
import binascii
import re
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from msgspec import Struct

from byok.core.chat import ImagePart, Json, Part, TextPart, ToolResult
from byok.core.conversation_builder import make_result
from byok.core.escapes import escape, keep_ends, truncate_middle
from byok.core.wire.attachments import check_image, is_text
from byok.core.wire.json_body import write_json
from byok.protocols.augment.body import (
    first_text,
    flag,
    integer,
    mapping,
    objects,
    text,
)
from byok.protocols.augment.frames import LONGEST, without_tags

MAX_FOLDERS = 8
MAX_EDITED_FILES = 6
MAX_EDITS_PER_FILE = 6
MAX_EDIT_CHARS = 200
MAX_FILE_CHARS = 20_000
MAX_NAME_CHARS = 1000
_LANGUAGE = re.compile(r"[\w+#./-]{1,40}")
_MAX_LOGGED_TYPES = 10
UNREADABLE = TextPart("[an image that could not be read]")
CARRIERS = ("nodes", "structured_request_nodes", "request_nodes")
# Media types by the formats of clients: a media type, its subtype, or a number.
_MEDIA_TYPES = {
    "0": "image/png", "1": "image/png", "2": "image/jpeg", "3": "image/gif",
    "4": "image/webp",
    "png": "image/png", "jpeg": "image/jpeg", "jpg": "image/jpeg",
    "gif": "image/gif", "webp": "image/webp",
}  # fmt: skip


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


class UserTurn(Struct, frozen=True):
    """One request of the user.

    Attributes:
        content: everything for the model, in its order.
        results: the results of tools.
        asks: there are words or images of the user, and not only context.
        summary: the payload of a history summary node.
        personality: the payload of a change-personality node.
        unknown_types: types of nodes that byok does not know.
        words: what the user wrote.
        before_summary: how many parts of the content precede the summary.
    """

    content: tuple[Part, ...] = ()
    results: tuple[ToolResult, ...] = ()
    asks: bool = False
    summary: Json | None = None
    personality: Json | None = None
    unknown_types: tuple[int, ...] = ()
    words: str = ""
    before_summary: int = 0


def unknown_note(*turns: UserTurn) -> str:
    """Return a line for the log about nodes of unknown types, "" if there are none."""
    kinds = {kind for turn in turns for kind in turn.unknown_types}
    types = ", ".join(map(str, sorted(kinds)[:_MAX_LOGGED_TYPES]))
    return f"request nodes of unknown types are left out: {types}" if types else ""


def request_nodes(body: Json) -> list[dict[str, Any]]:
    """Return the nodes in all fields for them, without duplicates, by their `id`."""
    carriers = [objects(body, name) for name in CARRIERS]
    nodes = [node for carrier in carriers for node in carrier]
    if len(nodes) < 2:
        return nodes
    if sum(map(bool, carriers)) > 1:
        nodes = list({write_json(node): node for node in nodes}.values())
    return sorted(nodes, key=lambda node: integer(node, "id"))


def read_result(node: Json) -> ToolResult:
    """Read the payload of a tool result node; `content` counts without other nodes."""
    parts: list[TextPart | ImagePart] = []
    for part in objects(node, "content_nodes"):
        match integer(part, "type"):
            case ToolResultContent.TEXT:
                parts.append(TextPart(text(part, "text_content")))
            case ToolResultContent.IMAGE:
                parts.append(read_image(mapping(part, "image_content")) or UNREADABLE)
            case _:
                pass  # 0 is "unspecified" and holds nothing
    if not any(isinstance(part, ImagePart) or part.text for part in parts):
        parts = [TextPart(text(node, "content"))]
    return make_result(
        text(node, "tool_use_id"), parts, is_error=flag(node, "is_error")
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
    """Tell whether a message is a placeholder without meaning: "", "...", "---"."""
    bare = message.strip()
    return not bare or bare == "..." or (len(bare) <= 8 and set(bare) == {"-"})


class _Reader:
    """A reader of the nodes of one request, in their order."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._parts: list[Part] = []
        self._words: list[str] = []
        self._asks = False
        self._summary: Json | None = None
        self._before_summary = 0
        self._personality: Json | None = None
        self._unknown: list[int] = []

    def turn(self, results: tuple[ToolResult, ...]) -> UserTurn:
        self._add_message()
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
                words = text(mapping(node, "text_node"), "content")
                if not (skip_placeholder and is_placeholder(words)):
                    self._add_message()
                    self._add_words(words)
            case RequestNode.TOOL_RESULT:
                pass  # read separately: results precede the words of their exchange
            case RequestNode.IMAGE:
                self._add_image(read_image(mapping(node, "image_node")))
            case RequestNode.FILE:
                self._add_file(mapping(node, "file_node"))
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
                self._add_context(_RENDER[kind](node))
            case other:
                self._unknown.append(other)

    def _add_message(self) -> None:
        message, self._message = self._message, ""
        self._add_words(message)

    def _add_words(self, words: str) -> None:
        if words.strip() and words.strip() not in self._words[-1:]:
            self._parts.append(TextPart(words))
            self._words.append(words.strip())
            self._asks = True

    def _add_context(self, block: str) -> None:
        if block:
            self._parts.append(TextPart(block))

    def _add_image(self, image: ImagePart | None) -> None:
        self._parts.append(image or UNREADABLE)
        self._asks = True

    def _add_file(self, payload: Json) -> None:
        data = text(payload, "file_data")
        media_type = text(payload, "format").lower() or data_url_type(data)
        if media_type.startswith("image/") and not is_text(media_type):
            self._add_image(read_image({"image_data": data, "format": media_type}))
        else:
            self._add_context(render_file(data, media_type))
            self._asks = True


def _type(node: Json) -> int:
    return integer(node, "type", -1)


def read_image(node: Json) -> ImagePart | None:
    """Read `{image_data, format}`; None if the data are not an image in base64.

    The format may be wrong. Nothing is ever fetched: a URL is not an image.
    """
    data = text(node, "image_data").strip()
    own_type = data_url_type(data)
    if own_type:
        data = data.partition(",")[2]
    form = (own_type or text(node, "format")).lower().removeprefix("image/")
    return check_image(data, _MEDIA_TYPES.get(form, ""))


def data_url_type(data: str) -> str:
    """Return the media type of a data URL, "" for anything else."""
    if not data.startswith("data:"):
        return ""
    declared = data[: data.find(",") + 1].removeprefix("data:")
    return declared.partition(";")[0].rstrip(",").lower() or "text/plain"


# --- The client's context, as labelled text ---


def render_ide_state(node: Json) -> str:
    """Render the open folders and the terminal's directory; "" if nothing changed."""
    lines: list[str] = []
    if not flag(node, "workspace_folders_unchanged"):
        folders = [
            first_text(folder, "folder_root", "repository_root")
            for folder in objects(node, "workspace_folders")
        ]
        lines += [f"root: {one_line(root)}" for root in folders[:MAX_FOLDERS] if root]
    if cwd := text(mapping(node, "current_terminal"), "current_working_directory"):
        lines.append(f"terminal cwd: {one_line(cwd)}")
    return "\n".join(["[workspace]", *lines]) if lines else ""


def render_edits(node: Json) -> str:
    """Render the user's recent edits: the file, then `line: old → new`."""
    lines: list[str] = []
    for event in objects(node, "edit_events")[:MAX_EDITED_FILES]:
        edits = [
            f"  {integer(e, 'after_line_start')}: "
            f"{_short(text(e, 'before_text'))} → {_short(text(e, 'after_text'))}"
            for e in objects(event, "edits")[:MAX_EDITS_PER_FILE]
        ]
        if edits:
            lines += [one_line(text(event, "path")) or "(unnamed file)", *edits]
    return "\n".join(["[recent edits by the user]", *lines]) if lines else ""


def render_selection(body: Json, around: int = MAX_FILE_CHARS) -> str:
    """Render the selected code and its surroundings; "" without any code.

    The surroundings are up to `around` characters before and after the selection.
    """
    around = max(1, min(around, MAX_FILE_CHARS))
    selected = text(body, "selected_code")
    prefix, suffix = text(body, "prefix")[-around:], text(body, "suffix")[:around]
    if not (selected or prefix or suffix):
        return ""
    path = one_line(text(body, "path"))
    head = f"[code in the editor: {path}]" if path else "[code in the editor]"
    parts = [head]
    for label, code in (
        ("before the selection", prefix),
        ("selected", truncate_middle(selected, LONGEST)),
        ("after the selection", suffix),
    ):
        if code.strip():
            parts.append(f"{label}:\n{fence_code(code, text(body, 'lang'))}")
    return "\n".join(parts) if len(parts) > 1 else ""


def render_diff(patch: str) -> str:
    """Render the patch that a question refers to."""
    return (
        f"[patch]\n{fence_code(truncate_middle(patch, LONGEST), 'diff')}"
        if patch.strip()
        else ""
    )


def fence_code(code: str, language: str = "") -> str:
    """Put code into a fence with more backticks than the code has in a row.

    The code stays unchanged: a model may have to write it again. An invalid name of a
    language is left out.
    """
    language = language if _LANGUAGE.fullmatch(language) else ""
    longest = max(map(len, re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code.rstrip(chr(10))}\n{fence}"


def render_file(data: str, media_type: str) -> str:
    """Render an attached file: its text, or a line with its type and size."""
    payload = data.partition(",")[2] if data_url_type(data) else data
    media_type = media_type or data_url_type(data)
    try:
        raw = base64.b64decode("".join(payload.split()), validate=True)
    except (binascii.Error, ValueError):
        return render_placeholder("an attached file that could not be read", media_type)
    bare = media_type.partition(";")[0].strip().lower()
    if is_text(bare):
        content = raw.decode("utf-8", "replace")
        return (
            f"[attached file, {one_line(bare)}]\n{fence_code(content[:MAX_FILE_CHARS])}"
        )
    return render_placeholder(
        "attached file", bare or "unknown type", f"{len(raw):,} bytes"
    )


def render_placeholder(subject: str, *details: Any) -> str:
    """Render a placeholder for data that byok does not have, such as an image."""
    shown = ", ".join(one_line(str(d)[:MAX_EDIT_CHARS]) for d in details if d)
    return f"[{subject}: {shown}]" if shown else f"[{subject}]"


def one_line(name: str) -> str:
    """Return an untrusted name on one line, with invisible characters escaped.

    A name such as `<rule>.../rule>` cannot open a frame of the prompt (`frames.py`).
    """
    return without_tags(
        escape(keep_ends(name, MAX_NAME_CHARS // 2, MAX_NAME_CHARS // 2))
    )


def _short(edited: str) -> str:
    return repr(edited[:MAX_EDIT_CHARS])


_RENDER: dict[int, Callable[[Json], str]] = {
    RequestNode.IDE_STATE: lambda n: render_ide_state(mapping(n, "ide_state_node")),
    RequestNode.EDIT_EVENTS: lambda n: render_edits(mapping(n, "edit_events_node")),
    RequestNode.IMAGE_ID: lambda n: render_placeholder(
        "image kept by the client", first_text(mapping(n, "image_id_node"), "image_id")
    ),
    RequestNode.FILE_ID: lambda n: render_placeholder(
        "file kept by the client",
        first_text(mapping(n, "file_id_node"), "file_name", "file_id"),
    ),
    RequestNode.CHECKPOINT_REF: lambda n: render_placeholder(
        "checkpoint of the workspace"
    ),
}
