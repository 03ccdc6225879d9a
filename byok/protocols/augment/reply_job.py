"""The type of a decoded request: what to ask a model, and how to write the reply."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct, field

from byok.core.chat import ChatRequest, Json, Sampling, ToolDefinition
from byok.core.code_query import CodeQuestion, FileChunk
from byok.core.errors import ByokError
from byok.core.events import StreamEvent
from byok.core.prompts.prompt_set import (
    ModelFit,
    Prompt,
    PromptSet,
    Situation,
    count_tokens,
    shipped_prompts,
)
from byok.protocols.augment.body import KeptReadings
from byok.protocols.augment.editor_context import ShownContext
from byok.protocols.augment.history import HistoryItem, read_exchange
from byok.protocols.augment.tools import read_tool

NO_VALUES: Mapping[str, str] = {}
_HISTORY_ROOM, _TOOLS_ROOM = 64 * 2**20, 8 * 2**20  # bytes


class DecodeState(Struct, frozen=True):
    """What is kept from one body to the next.

    `shown` is the editor's context in earlier requests. Items of the history and tools
    may be read by a KeptReadings.
    """

    shown: ShownContext = field(default_factory=ShownContext)
    read_exchange: Callable[[Json], HistoryItem] = read_exchange
    read_tool: Callable[[Json], ToolDefinition | None] = read_tool

    def forget(self) -> None:
        """Forget what is kept for speed only."""
        for read in (self.read_exchange, self.read_tool):
            if isinstance(read, KeptReadings):
                read.forget()


def keep_readings(has_room: Callable[[], bool]) -> DecodeState:
    """Return a state that keeps what it reads while there is room in memory."""
    return DecodeState(
        read_exchange=KeptReadings(read_exchange, _HISTORY_ROOM, has_room),
        read_tool=KeptReadings(read_tool, _TOOLS_ROOM, has_room),
    )


class Defaults(Struct, frozen=True):
    """The user's settings for every request of an endpoint.

    `fit` is what prompts must suit. With `compact_tools` the descriptions of tools are
    shortened. `state` is no setting, but what decoding needs besides one body.
    """

    system_prompt: str = ""
    addition: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    prompts: PromptSet = field(default_factory=shipped_prompts)
    fit: ModelFit = field(default_factory=ModelFit)
    compact_tools: bool = False
    state: DecodeState = field(default_factory=DecodeState)

    def render(
        self,
        name: str,
        values: Mapping[str, str] = NO_VALUES,
        *,
        tools: Iterable[str] = (),
        conditions: Sequence[str] = (),
        beside: str = "",
    ) -> Prompt:
        """Return a prompt for a request that offers these tools.

        It shares its part of the window with the prompt that it stands `beside`.
        """
        situation = Situation(
            *self.fit,
            frozenset(tools),
            frozenset(conditions),
            count_tokens(beside) if beside else 0,
        )
        return self.prompts.render(name, situation, values)


class ReplyFacts(Struct, frozen=True):
    """What a reply reports besides the model's words.

    Unless a model `is_asked`, that there is no answer is no failure. `say` puts byok's
    sentences into the user's language.
    """

    request_id: str = ""
    unknown: tuple[str, ...] = ()
    checkpoint_found: bool = True
    chunks: tuple[FileChunk, ...] = ()
    is_asked: bool = True
    say: Callable[[str], str] = str

    @property
    def fields(self) -> dict[str, Any]:
        """The blobs that byok does not have; each name makes the client upload it."""
        return {
            "unknown_blob_names": list(self.unknown),
            "checkpoint_not_found": not self.checkpoint_found,
        }

    def error(self, error: ByokError) -> dict[str, Any]:
        """Return an error as the last line of a stream has it."""
        return self.failure(error.code, error.sentence)

    def failure(self, code: str, message: str) -> dict[str, Any]:
        """Return a failure as the last line of a stream has it."""
        return {"code": code, "message": message, "request_id": self.request_id}


class _Reply(Protocol):
    def feed(self, event: StreamEvent, /) -> Iterable[Json]: ...

    def flush(self) -> Iterable[Json]: ...


class LineReply(_Reply, Protocol):
    """Stage[StreamEvent, Json] that writes the lines of a streamed reply.

    `first` comes before everything else, and `heartbeat` is sent during silence, if the
    endpoint's format allows them. Unless it `keeps_part`, a part of an answer is of no
    use: a failure is an HTTP status where one can still be sent.
    """

    @property
    def keeps_part(self) -> bool:
        """Whether a part of the answer is of use."""
        ...

    @property
    def heartbeat(self) -> Json | None:
        """The line to send during silence."""
        ...

    @property
    def first(self) -> Json | None:
        """The line before everything else."""
        ...

    def fail(self, error: ByokError, /) -> Iterable[Json]:
        """Return the lines that end a failed answer."""
        ...


class ObjectReply(_Reply, Protocol):
    """Stage[StreamEvent, Json] whose flush returns the single object of a reply."""

    def fail_whole(self, error: ByokError, /) -> Json:
        """Return the object for a failed answer, or raise the error."""
        ...


Reply = TypeVar("Reply", bound=_Reply, covariant=True)


class ReplyJob(Struct, Generic[Reply], frozen=True):
    """A decoded client request: the question for the model and how to write the reply.

    Without messages the model is not asked and the reply is empty. `wanted` is the
    question about code, if code is to be added to the chat.
    """

    chat: ChatRequest
    reply: Callable[[ReplyFacts], Reply]
    wanted: CodeQuestion | None = None


class Decode(Protocol[Reply]):
    """Decodes a body.

    Raises:
        BadRequest: 422, a required field is missing.
    """

    def __call__(self, body: Json, defaults: Defaults, /) -> ReplyJob[Reply]:
        """Decode one body."""
        ...
