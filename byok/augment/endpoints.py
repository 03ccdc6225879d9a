"""The table of all endpoints that a client may call."""

from dataclasses import dataclass
from typing import TypeAlias

from byok.augment.chat_job import chat_lines, chat_object
from byok.augment.completion.reply import CompletionObject
from byok.augment.constant_replies import QUIET, ConstantReply
from byok.augment.prompts import (
    chat_input,
    commit_message,
    completion,
    conversation_title,
    edit,
    edit_file,
    instruction,
    next_edit,
    next_edit_loc,
    prompt_enhancer,
    smart_paste,
)
from byok.augment.reply_job import Decode, LineReply, ObjectReply
from byok.purposes import Purpose
from byok.routing import Service


@dataclass(frozen=True, slots=True)
class Streamed:
    """The reply is a stream of lines; `in_file` if it counts lines of a file."""

    decode: Decode[LineReply]
    in_file: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """The reply is one object."""

    decode: Decode[ObjectReply]


@dataclass(frozen=True, slots=True)
class Completing(Whole):
    """The reply is one object, which is empty if it is not ready in time."""

    decode: Decode[CompletionObject]


@dataclass(frozen=True, slots=True)
class Generate:
    """An endpoint that a model answers; `purpose` decides which model."""

    path: str
    how: Streamed | Whole
    purpose: Purpose
    what: str  # the answer, for the page of the endpoints
    max_body: int = 64 * 2**20

    @property
    def stream(self) -> bool:
        """Whether the answer is a stream."""
        return isinstance(self.how, Streamed)


@dataclass(frozen=True, slots=True)
class Local:
    """An endpoint that byok answers from its own state."""

    path: str
    answer: Service
    max_body: int = 2**20


@dataclass(frozen=True, slots=True)
class Refused:
    """Refuse, because an empty reply would do harm or make the client wait."""

    path: str
    reason: str
    status: int = 422


Endpoint: TypeAlias = Generate | Local | ConstantReply | Refused

_NO_REMOTE = "byok runs no remote agents."

ENDPOINTS: tuple[Endpoint, ...] = (
    Generate("/chat-stream", Streamed(chat_lines), Purpose.CHAT, "chat chunks"),
    Generate("/chat", Whole(chat_object), Purpose.CHAT, "one chat object"),
    Generate(
        "/prompt-enhancer",
        Streamed(prompt_enhancer.decode),
        Purpose.ENHANCE,
        "chat chunks whose text is the new prompt",
    ),
    Generate(
        "/generate-commit-message-stream",
        Streamed(commit_message.decode),
        Purpose.COMMIT,
        "chat chunks whose text is the commit message",
    ),
    Generate(
        "/generate-conversation-title",
        Whole(conversation_title.decode),
        Purpose.TITLE,
        "one object on one line, the title as `text` and as `title`",
    ),
    Generate(
        "/edit",
        Whole(edit.decode),
        Purpose.EDIT,
        "one object with the new selection as `text`",
    ),
    Generate(
        "/instruction-stream",
        Streamed(instruction.decode, in_file=True),
        Purpose.EDIT,
        "the lines to replace, then the new text, complete or not at all",
    ),
    Generate(
        "/smart-paste-stream",
        Streamed(smart_paste.decode),
        Purpose.EDIT,
        "the lines to replace, then the new text, complete or not at all",
    ),
    Generate(
        "/agents/edit-file",
        Whole(edit_file.decode),
        Purpose.EDIT,
        "one object with the new file contents, or the old ones and `is_error`",
    ),
    Generate(
        "/next-edit-stream",
        Streamed(next_edit.decode),
        Purpose.EDIT,
        "one suggestion, or none",
    ),
    Generate(
        "/next_edit_loc",
        Whole(next_edit_loc.decode),
        Purpose.EDIT,
        "one object with the client's candidate places, the likeliest first",
    ),
    Generate(
        "/completion",
        Completing(completion.decode),
        Purpose.COMPLETION,
        "one object with the completion, or without items; never an error",
        max_body=8 * 2**20,
    ),
    Generate(
        "/chat-input-completion",
        Completing(chat_input.decode),
        Purpose.COMPLETION,
        "the same for the chat input box, a single line",
        max_body=8 * 2**20,
    ),
    Local("/get-models", Service.MODELS),
    Local("/find-missing", Service.FIND_MISSING),
    Local("/batch-upload", Service.BATCH_UPLOAD, max_body=32 * 2**20),
    Local("/checkpoint-blobs", Service.CHECKPOINT, max_body=32 * 2**20),
    Local("/agents/codebase-retrieval", Service.RETRIEVAL, max_body=32 * 2**20),
    # byok's own, for its command line and MCP server: they mean this machine, wherever
    # the user sends what clients ask.
    Local("/byok/daemon", Service.DAEMON),
    Local("/byok/settings", Service.SETTINGS),
    Local("/byok/catalog", Service.CATALOG),
    Local("/byok/keys", Service.KEYS),
    Local("/byok/keys/test", Service.KEY_TEST),
    Local("/byok/reload", Service.RELOAD),
    Local("/byok/stop", Service.STOP),
    Local("/byok/retrieval", Service.RETRIEVAL),
    Local("/byok/official", Service.OFFICIAL),
    Local("/byok/search", Service.SEARCH),
    Local("/byok/index/status", Service.INDEX_STATUS),
    Local("/byok/index/add", Service.INDEX_ADD),
    Local("/byok/index/remove", Service.INDEX_REMOVE),
    Local("/byok/index/rebuild", Service.INDEX_REBUILD),
    Local("/byok/index/why", Service.INDEX_WHY),
    Refused("/agents/codebase-retrieval-raw", "Not found.", status=404),
    Refused("/remote-agents/create", _NO_REMOTE, status=403),
    Refused("/remote-agents/chat", _NO_REMOTE, status=403),
    *QUIET,
)
