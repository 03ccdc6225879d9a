"""The table of all endpoints that a client may call.

Rows of one `group` go to the official service together. A row without a group is always
answered by byok: byok's own rows, and /token, because the service's answer would give
its token to the client.
"""

from typing import TypeAlias

from msgspec import Struct

from byok.core.chat import Json
from byok.core.code_query import Retrieval
from byok.core.errors import BadRequest
from byok.core.routing import EndpointGroup, Purpose, Service
from byok.protocols.augment.blobs import (
    checkpoint_reply,
    decode_uploads,
    encode_retrieval,
    missing_reply,
    upload_reply,
)
from byok.protocols.augment.chat_job import chat_lines, chat_object
from byok.protocols.augment.completion import CompletionObject
from byok.protocols.augment.constant_replies import QUIET, ConstantReply
from byok.protocols.augment.prompts import (
    chat_texts,
    commit_message,
    completion,
    edit,
    next_edit,
)
from byok.protocols.augment.reply_job import (
    Decode,
    Defaults,
    LineReply,
    ObjectReply,
    ReplyFacts,
)


class Streamed(Struct, frozen=True):
    """The reply is a stream of lines; `in_file`: it has line numbers of a file."""

    decode: Decode[LineReply]
    in_file: bool = False


class Whole(Struct, frozen=True):
    """The reply is one object."""

    decode: Decode[ObjectReply]


class Completing(Whole, frozen=True):
    """The reply is one object, which is empty if it is not ready in time."""

    decode: Decode[CompletionObject]


class Generate(Struct, frozen=True):
    """An endpoint that a model answers; `purpose` decides which model."""

    path: str
    group: EndpointGroup
    reply: Streamed | Whole
    purpose: Purpose
    about: str  # the answer, for the page of the endpoints
    max_body: int = 64 * 2**20

    @property
    def stream(self) -> bool:
        """Whether the answer is a stream."""
        return isinstance(self.reply, Streamed)


class Local(Struct, frozen=True):
    """An endpoint that byok answers from its own state: a Service, or a feature.

    Paths `for_owner` are for byok's command line and MCP server, and need the owner's
    token instead of the clients'. They are in no group: they are about this machine,
    even if clients' requests go to the official service.
    """

    path: str
    service: str
    group: EndpointGroup | None = None
    for_owner: bool = False
    max_body: int = 2**20


class Refused(Struct, frozen=True):
    """An endpoint that is refused: an empty reply would do harm."""

    path: str
    group: EndpointGroup | None
    reason: str
    status: int = 422


Endpoint: TypeAlias = Generate | Local | ConstantReply | Refused

_NO_REMOTE = "byok runs no remote agents."
_NO_CLOUD = "byok runs no cloud agents."
_NO_SECRETS = (
    "byok stores no secrets for clients: byok keys set stores those of upstreams."
)
NO_SETTINGS = (
    "byok stores no settings for clients: write them in the client's own files."
)
# The id of a checkpoint while its endpoint is disabled; it is unknown afterwards, so
# that clients send all names again.
CHECKPOINT = "off"

ENDPOINTS: tuple[Endpoint, ...] = (
    Generate(
        "/chat-stream",
        EndpointGroup.CHAT,
        Streamed(chat_lines),
        Purpose.CHAT,
        "chat chunks; to a background job (`silent`) a whole answer or an error",
    ),
    Generate(
        "/chat", EndpointGroup.CHAT, Whole(chat_object), Purpose.CHAT, "one chat object"
    ),
    Generate(
        "/prompt-enhancer",
        EndpointGroup.CHAT,
        Streamed(chat_texts.decode_enhancer),
        Purpose.ENHANCE,
        "chat chunks whose text is the new prompt, complete or an error",
    ),
    Generate(
        "/generate-commit-message-stream",
        EndpointGroup.EDIT,
        Streamed(commit_message.decode),
        Purpose.COMMIT,
        "chat chunks whose text is the commit message, complete or an error",
    ),
    Generate(
        "/generate-conversation-title",
        EndpointGroup.CHAT,
        Whole(chat_texts.decode_title),
        Purpose.TITLE,
        "one object on one line, the title as `text` and as `title`",
    ),
    Generate(
        "/edit",
        EndpointGroup.EDIT,
        Whole(edit.decode_edit),
        Purpose.EDIT,
        "one object with the new selection as `text`",
    ),
    Generate(
        "/instruction-stream",
        EndpointGroup.EDIT,
        Streamed(edit.decode_instruction, in_file=True),
        Purpose.EDIT,
        "the lines to replace, then the new text, complete or not at all",
    ),
    Generate(
        "/smart-paste-stream",
        EndpointGroup.EDIT,
        Streamed(edit.decode_smart_paste),
        Purpose.EDIT,
        "the lines to replace, then the new text, complete or not at all",
    ),
    Generate(
        "/agents/edit-file",
        EndpointGroup.EDIT,
        Whole(edit.decode_edit_file),
        Purpose.EDIT,
        "one object with the new file contents, or the old ones and `is_error`",
    ),
    Generate(
        "/next-edit-stream",
        EndpointGroup.EDIT,
        Streamed(next_edit.decode_next_edit),
        Purpose.NEXT_EDIT,
        "one suggestion, or none",
    ),
    Generate(
        "/next_edit_loc",
        EndpointGroup.EDIT,
        Whole(next_edit.decode_next_edit_place),
        Purpose.EDIT,
        "one object with the client's candidate places, the likeliest first",
    ),
    Generate(
        "/completion",
        EndpointGroup.COMPLETION,
        Completing(completion.decode),
        Purpose.COMPLETION,
        "one object with the completion, or without items; never an error",
        max_body=8 * 2**20,
    ),
    Generate(
        "/chat-input-completion",
        EndpointGroup.COMPLETION,
        Completing(chat_texts.decode_chat_input),
        Purpose.COMPLETION,
        "the same for the chat input box, a single line",
        max_body=8 * 2**20,
    ),
    Local("/get-models", Service.MODELS, EndpointGroup.MODELS),
    Local("/find-missing", Service.FIND_MISSING, EndpointGroup.CONTEXT),
    Local(
        "/batch-upload",
        Service.BATCH_UPLOAD,
        EndpointGroup.CONTEXT,
        max_body=32 * 2**20,
    ),
    Local(
        "/checkpoint-blobs",
        Service.CHECKPOINT,
        EndpointGroup.CONTEXT,
        max_body=32 * 2**20,
    ),
    Local(
        "/agents/codebase-retrieval",
        Service.RETRIEVAL,
        EndpointGroup.CONTEXT,
        max_body=32 * 2**20,
    ),
    *(Local(s.own_path, s, for_owner=True) for s in Service if s.own_path),
    Refused(
        "/agents/codebase-retrieval-raw",
        EndpointGroup.CONTEXT,
        "Not found.",
        status=404,
    ),
    Refused("/remote-agents/create", EndpointGroup.AGENTS, _NO_REMOTE, status=403),
    Refused("/remote-agents/chat", EndpointGroup.AGENTS, _NO_REMOTE, status=403),
    *(
        Refused(path, EndpointGroup.AGENTS, _NO_CLOUD, status=403)
        for path in (
            "/cloud-agents/agents/create",
            "/cloud-agents/agents/send-message",
            "/cloud-agents/agents/rename",
            "/cloud-agents/agents/delete",
            "/cloud-agents/agents/update-session-config",
            "/cloud-agents/agents/update-tags",
            "/cloud-experts/experts/create-agent",
        )
    ),
    Refused("/user-secrets/upsert", EndpointGroup.ACCOUNT, _NO_SECRETS, status=403),
    *QUIET,
)


def disabled_error(group: EndpointGroup) -> BadRequest:
    """Return the error for a group that is disabled."""
    return BadRequest(
        f"The endpoint group {group} is disabled.",
        code="switched_off",
        hint=f"See the setting {group} in [routing.official].",
        status=422,
    )


def off_answer(
    row: Generate | Local, group: EndpointGroup, body: Json, request_id: str
) -> ConstantReply:
    """Return the reply of an endpoint whose group the user disabled.

    It does as little harm as possible: a model's answer fails, an upload is accepted
    and dropped.

    Raises:
        BadRequest: 422, every possible reply would do harm.
    """
    if isinstance(row, Local):
        return ConstantReply(row.path, (_empty_reply(row.service, group, body),))
    error, facts = disabled_error(group), ReplyFacts(request_id)
    match row.reply:
        case Streamed(decode):
            lines = decode(body, Defaults()).reply(facts)
            if not lines.keeps_part:
                raise error
            first = () if lines.first is None else (lines.first,)
            return ConstantReply(row.path, (*first, *lines.fail(error)), stream=True)
        case Whole(decode):
            whole = decode(body, Defaults()).reply(facts)
            return ConstantReply(row.path, (whole.fail_whole(error),))


def _empty_reply(service: str, group: EndpointGroup, body: Json) -> Json:
    match service:
        case Service.FIND_MISSING:
            return missing_reply((), ())
        case Service.BATCH_UPLOAD:
            sent = decode_uploads(body)
            return upload_reply(sent, [""] * len(sent))
        case Service.CHECKPOINT:
            return checkpoint_reply(CHECKPOINT)
        case Service.RETRIEVAL:
            return encode_retrieval(Retrieval(disabled_error(group).sentence))
        case _:
            raise disabled_error(group)
