"""Vendor-neutral types of a request: one conversation, its tools and its settings."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias

from msgspec import Struct, field

Json: TypeAlias = Mapping[str, Any]


class Origin(Struct, frozen=True):
    """The origin of provider data: dialect, name of the upstream, name of the model.

    Providers accept only their own data, and some only for the same model. So data is
    sent back only if all three are equal.
    """

    dialect: str
    upstream: str
    model: str


NO_ORIGIN = Origin("", "", "")


class ProviderData(Struct, frozen=True):
    """Opaque data of a message part, which the provider wants back unchanged.

    Examples: signatures of thinking blocks and tool calls, encrypted reasoning, item
    ids. Only the dialect of its origin understands `data`; nothing else may read or
    change it.
    """

    origin: Origin
    data: Json

    def __hash__(self) -> int:
        return hash(self.origin)


class Role(StrEnum):
    """The author of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class TextPart(Struct, frozen=True):
    """Plain text; an aside is not by the author, such as facts about an editor."""

    text: str
    is_aside: bool = False


class ContextPart(TextPart, frozen=True):
    """Code that byok retrieved for a question; dropped first if space is short."""

    is_aside: bool = True


class ImagePart(Struct, frozen=True):
    """An image: its media type (such as `image/png`) and its bytes in base64."""

    media_type: str
    data: str


class ThinkingPart(Struct, frozen=True):
    """One block of a model's reasoning. Few upstreams expect it to be sent back.

    The text may be empty if `provider_data` holds the reasoning in encrypted form.
    """

    text: str
    provider_data: ProviderData | None = None


class ToolCall(Struct, frozen=True):
    """A tool call of the model; `arguments` is the JSON text of an object."""

    id: str
    name: str
    arguments: str
    provider_data: ProviderData | None = None


class ToolResult(Struct, frozen=True):
    """The output of one tool call, as the client reports it.

    `content` may be empty. It refers to the images by number, in their order: `[image 1
    below]`. With `is_missing`, the client sent no result, and byok has made this one,
    because every call needs a result.
    """

    call_id: str
    name: str
    content: str
    is_error: bool = False
    images: tuple[ImagePart, ...] = ()
    is_missing: bool = False


Part: TypeAlias = TextPart | ImagePart | ThinkingPart | ToolCall | ToolResult


class Message(Struct, frozen=True):
    """One message of a conversation; with the role TOOL, exactly one ToolResult.

    The parts of an assistant message are its blocks, in the order in which the model
    wrote them: thinking, text and tool calls may alternate. All texts of one message
    are pieces of one text; join them without a separator.
    """

    role: Role
    parts: tuple[Part, ...]


def parts_of(messages: Iterable[Message]) -> Iterator[Part]:
    """Return the parts of all messages, in their order."""
    return chain.from_iterable(map(attrgetter("parts"), messages))


def calls_of(message: Message) -> list[ToolCall]:
    """Return the tool calls of a message."""
    return [part for part in message.parts if isinstance(part, ToolCall)]


def is_said_by_user(message: Message) -> bool:
    """Tell whether a message has words of the user, or only pictures.

    Such a message begins a turn; one with asides only, which an editor sends beside the
    results of tools, does not.
    """
    if message.role is not Role.USER:
        return False
    texts = [part for part in message.parts if isinstance(part, TextPart)]
    return not texts or not all(text.is_aside for text in texts)


def data_of(part: ThinkingPart | ToolCall) -> Json:
    """Return the provider data of a part, {} if it has none."""
    return part.provider_data.data if part.provider_data else {}


def text_of(parts: Iterable[Part], between: str = "\n\n") -> str:
    """Return the texts of some parts, joined."""
    return between.join(part.text for part in parts if isinstance(part, TextPart))


class ToolDefinition(Struct, frozen=True):
    """A tool that the model may call; `parameters` is a JSON Schema of type object.

    The MCP names tell the client which server and tool to call; they are empty for the
    client's own tools.
    """

    name: str
    description: str
    parameters: Json
    mcp_server_name: str = ""
    mcp_tool_name: str = ""


class Sampling(Struct, frozen=True):
    """Sampling parameters; None, "" and () mean the upstream's own default.

    `effort` is how much the model should reason: `none`, `minimal`, `low`, `medium`,
    `high`, `xhigh` or `max`. A dialect uses the nearest level that the model accepts.
    The model stops before any text in `stop`.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    effort: str = ""
    stop: tuple[str, ...] = ()


class RepairMode(StrEnum):
    """How far tool calls are repaired: not, if certain, or also with empty values."""

    OFF = "off"
    LOSSLESS = "lossless"
    FILL = "fill"


class ToolUse(StrEnum):
    """Whether the model may, must or must not call a tool."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


class ToolChoice(Struct, frozen=True):
    """Whether to call a tool; with REQUIRED and a name, which one."""

    use: ToolUse = ToolUse.AUTO
    name: str = ""


class JsonAnswer(Struct, frozen=True):
    """The answer must be JSON and, if there is a schema, must match it."""

    schema: Json | None = None
    name: str = "answer"


class FimRequest(Struct, frozen=True):
    """A fill-in-the-middle request: the code before and after the gap, with LF.

    With `one_line`, nothing after the first line break of the completion is used.
    """

    prefix: str
    suffix: str
    one_line: bool = False


class RecentEdit(Struct, frozen=True):
    """A change that the user made: the text before and after it, with LF.

    `line` is the number, from 0, of the first line of the text after it.
    """

    path: str
    before: str
    after: str
    line: int = 0


class NextEditRequest(FimRequest, frozen=True):
    """A request to predict the next edit: the code around the cursor, with LF.

    `line` is the number of the cursor's line, from 1. The newest edit is the last one.
    """

    path: str = ""
    line: int = 1
    edits: tuple[RecentEdit, ...] = ()


class ChatRequest(Struct, frozen=True):
    """Everything that is needed to ask a model for one turn.

    Attributes:
        messages: the conversation; empty if there is nothing to answer.
        tools: the tools that the model may call.
        own_words: the user's newest words, without any context.
        user_texts: what the user wrote in each turn, without any context.
        question: the user's words in this request; "" if it has only tool results.
        prompt: the name of byok's prompt for this request, "" if it is the client's.
        notes: what the prompt or the tools had to leave out, for the log.
        silent: a background job of the client that no user sees.
        whole: only a complete answer is useful, so no part of it is shown before.
        agent: the model works on its own, with tools.
        verbatim: the answer becomes code or text of the user exactly as it is.
        client_parallel_tools: the client accepts several tool calls in one turn.
        client_tool_use_start: the client accepts a node that announces a tool call.
        sampling: the user's sampling parameters.
        tool_choice: whether the model may, must or must not call a tool.
        json_answer: the answer must be JSON; None for any text.
        conversation: the client's id of the conversation, "" if it names none.
        cache_key: the client's name for prompts that begin alike, which may be those
            of several conversations; "" if it gives none.
        fim: a gap to fill; an upstream that can do so gets it instead of the messages.
        next_edit: the same for the next edit of a file, for models made for it.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    own_words: str = ""
    user_texts: tuple[str, ...] = ()
    question: str = ""
    prompt: str = ""
    notes: tuple[str, ...] = ()
    silent: bool = False
    whole: bool = False
    agent: bool = False
    verbatim: bool = False
    client_parallel_tools: bool = False
    client_tool_use_start: bool = False
    sampling: Sampling = field(default_factory=Sampling)
    tool_choice: ToolChoice = field(default_factory=ToolChoice)
    json_answer: JsonAnswer | None = None
    conversation: str = ""
    cache_key: str = ""
    fim: FimRequest | None = None
    next_edit: NextEditRequest | None = None

    @property
    def is_first_turn(self) -> bool:
        """Whether the conversation has no message of the assistant yet."""
        return all(message.role is not Role.ASSISTANT for message in self.messages)

    @property
    def is_question(self) -> bool:
        """Whether the user spoke last; after tool results, a model may stay silent."""
        return bool(self.messages) and is_said_by_user(self.messages[-1])
