"""What goes up: one conversation, in no vendor's words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of provider data: the dialect, the upstream's name, the model there.

    Providers accept such data from themselves only, and some bind it to one model, so
    all three must be the same.
    """

    dialect: str
    upstream: str
    model: str


NO_ORIGIN = Origin("", "", "")


@dataclass(frozen=True, slots=True)
class ProviderData:
    """Opaque data that a provider wants back unchanged with the part it came with.

    Signatures of thoughts and tool calls, encrypted reasoning, ids of items. Only the
    dialect of its origin can read `data`; nothing else may look into it or change it.
    """

    origin: Origin
    data: Json = field(hash=False)

    def data_for(self, origin: Origin) -> Json:
        """Return the data if it came from this very origin, else {}."""
        return self.data if self.origin == origin else {}


class Role(StrEnum):
    """Who speaks a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class TextPart:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class ContextPart(TextPart):
    """Code that byok found for a question: the first to go where room is short."""


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A picture: its media type (`image/png`) and its bytes in base64."""

    media_type: str
    data: str


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """One block of a model's reasoning; few upstreams want it back.

    The text may be empty where `provider_data` holds the reasoning in encrypted form.
    """

    text: str
    provider_data: ProviderData | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the model asks to run; `arguments` is the JSON text of an object."""

    id: str
    name: str
    arguments: str
    provider_data: ProviderData | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The output of a tool.

    `content` may be empty. Where it stands for pictures it says `[image 1 below]`, and
    so on, in the order of `images`.
    """

    call_id: str
    name: str
    content: str
    is_error: bool = False
    images: tuple[ImagePart, ...] = ()


Part: TypeAlias = TextPart | ImagePart | ThinkingPart | ToolCall | ToolResult


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. A message of role TOOL holds exactly one ToolResult.

    The parts of an assistant's message are its blocks in the order in which the model
    wrote them: thoughts, text and tool calls may alternate. The texts of one message
    are pieces of one text, and are joined without anything between them.
    """

    role: Role
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool the model may call; `parameters` is a JSON Schema of an object.

    The MCP names say where the client must send the call; empty for its own tools.
    """

    name: str
    description: str
    parameters: Json
    mcp_server_name: str = ""
    mcp_tool_name: str = ""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Request parameters; None leaves the upstream's own default."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class FimRequest:
    """What stands around a gap in a file; lines end in LF.

    Where it is `one_line`, nothing after a line break is of use.
    """

    prefix: str
    suffix: str
    one_line: bool = False


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Everything needed to ask a model for one turn.

    No messages means that there is nothing to answer. `own_words` are the user's newest
    ones, without any context around them; `question` those that came with this very
    request, "" if it only goes on with tool results. `silent` marks a background
    job of the client, `agent` a model that acts by itself; an answer that is taken
    `verbatim` becomes the user's code or words as it is; the two `client_` flags say
    what its reader can digest. With `fim` the messages ask for what belongs into a
    gap: an upstream that can fill gaps gets that instead of them.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    own_words: str = ""
    question: str = ""
    silent: bool = False
    agent: bool = False
    verbatim: bool = False
    client_parallel_tools: bool = False
    client_tool_use_start: bool = False
    sampling: Sampling = field(default_factory=Sampling)
    fim: FimRequest | None = None
