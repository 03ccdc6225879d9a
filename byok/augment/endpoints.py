"""Every path that a client may call, one row each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from byok.augment.chat_request import Defaults, decode_chat
from byok.augment.quiet import QUIET, Quiet
from byok.chat import ChatRequest, Json
from byok.knowledge import Service


@dataclass(frozen=True, slots=True)
class Generate:
    """Ask a model; a stream, or its chunks joined into one object."""

    path: str
    decode: Callable[[Json, Defaults, Callable[[int], None]], ChatRequest]
    stream: bool
    max_body: int = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Local:
    """Answer from what the daemon itself knows."""

    path: str
    answer: Service
    max_body: int = 2**20


@dataclass(frozen=True, slots=True)
class Refused:
    """Say that this is not served: an empty answer would do harm or keep waiting."""

    path: str
    reason: str
    status: int = 422


Endpoint: TypeAlias = Generate | Local | Quiet | Refused

_NOT_YET = "byok does not serve this endpoint yet."
_NO_REMOTE = "byok runs no remote agents."

ENDPOINTS: tuple[Endpoint, ...] = (
    Generate("/chat-stream", decode_chat, stream=True),
    Generate("/chat", decode_chat, stream=False),
    Local("/get-models", Service.MODELS),
    Local("/find-missing", Service.FIND_MISSING),
    Local("/batch-upload", Service.BATCH_UPLOAD, max_body=32 * 2**20),
    Local("/checkpoint-blobs", Service.CHECKPOINT, max_body=32 * 2**20),
    Local("/agents/codebase-retrieval", Service.RETRIEVAL, max_body=32 * 2**20),
    # byok's own, for its command line and MCP server.
    Local("/byok/search", Service.SEARCH),
    Local("/byok/index/status", Service.INDEX_STATUS),
    Local("/byok/index/add", Service.INDEX_ADD),
    Local("/byok/index/remove", Service.INDEX_REMOVE),
    Local("/byok/index/rebuild", Service.INDEX_REBUILD),
    Local("/byok/index/why", Service.INDEX_WHY),
    # An empty replacement would delete the user's code.
    Refused("/edit", _NOT_YET),
    Refused("/instruction-stream", _NOT_YET),
    Refused("/smart-paste-stream", _NOT_YET),
    Refused("/agents/edit-file", _NOT_YET),
    Refused("/prompt-enhancer", _NOT_YET),
    Refused("/generate-commit-message-stream", _NOT_YET),
    Refused("/generate-conversation-title", _NOT_YET),
    Refused("/agents/codebase-retrieval-raw", "Not found.", status=404),
    Refused("/remote-agents/create", _NO_REMOTE, status=403),
    Refused("/remote-agents/chat", _NO_REMOTE, status=403),
    *QUIET,
)
