"""Vendor-neutral types of a request: one conversation, its tools and its settings."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias

from msgspec import Struct, field

Json: TypeAlias = Mapping[str, Any]


class Origin(Struct, frozen=True):
    """Where provider data comes from: dialect, name of the upstream, name of the model.

    Providers accept such data only from themselves, and some only for the same model.
    So data goes back only where all three are equal.
    """

    dialect: str
    upstream: str
    model: str


NO_ORIGIN = Origin("", "", "")


class ProviderData(Struct, frozen=True):
    """Opaque data that a provider wants back, unchanged, with the part it came with.

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
    """Plain text; an aside is not of its author, such as facts about an editor."""

    text: str
    is_aside: bool = False


class ContextPart(TextPart, frozen=True):
    """Code that byok retrieved for a question; dropped first if room is short."""

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
    below]`. One that is missing was made up, as every call has a result.
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
    """Tell whether the user says something: in words, or by pictures alone.

    Only then a turn begins: what an editor tells beside the results of tools is none.
    """
    if message.role is not Role.USER:
        return False
    texts = [part for part in message.parts if isinstance(part, TextPart)]
    return not texts or not all(text.is_aside for text in texts)


def data_of(part: ThinkingPart | ToolCall) -> Json:
    """Return what its provider wants back with a part, {} for nothing."""
    return part.provider_data.data if part.provider_data else {}


def text_of(parts: Iterable[Part], between: str = "\n\n") -> str:
    """Return the texts among some parts as one."""
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
    `high`, `xhigh` or `max`. A dialect uses the nearest one that the model accepts.
    The model stops before a text of `stop`.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    effort: str = ""
    stop: tuple[str, ...] = ()


class RepairMode(StrEnum):
    """How far tool calls are repaired: never, if certain, or with empty values too."""

    OFF = "off"
    LOSSLESS = "lossless"
    FILL = "fill"


class ToolUse(StrEnum):
    """Whether the model may, must or must not call a tool."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


class ToolChoice(Struct, frozen=True):
    """Whether to call a tool; with REQUIRED and a name, that tool."""

    use: ToolUse = ToolUse.AUTO
    name: str = ""


class JsonAnswer(Struct, frozen=True):
    """The answer must be JSON; with a schema, JSON that it allows."""

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
    """A change that the user made: what stood there before, and now, with LF.

    `line` is the number, from 0, of the first line of what stands there now.
    """

    path: str
    before: str
    after: str
    line: int = 0


class NextEditRequest(FimRequest, frozen=True):
    """A question what of a file changes next: the code around the cursor, with LF.

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
        question: the user's words in this request; "" if it only brings tool results.
        prompt: the name of the prompt that says what the model is to do, "" for that of
            the client.
        notes: what the prompt or the tools had to leave out, for the log.
        silent: a background job of the client that no user sees.
        whole: only a complete answer is of use, so nothing of it is shown before.
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
        next_edit: the same for a file to change, for models that are made for it.
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
        """Whether nothing of the assistant is in the conversation yet."""
        return all(message.role is not Role.ASSISTANT for message in self.messages)

    @property
    def is_question(self) -> bool:
        """Whether the user spoke last; after tool results a model may say nothing."""
        return bool(self.messages) and is_said_by_user(self.messages[-1])
