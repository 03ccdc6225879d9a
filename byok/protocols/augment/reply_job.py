"""The types of a decoded request: the question for a model, and the reply's writer."""

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
from byok.protocols.augment.body import CachedReader
from byok.protocols.augment.editor_context import ShownContext
from byok.protocols.augment.history import HistoryItem, read_exchange
from byok.protocols.augment.tools import read_tool

NO_VALUES: Mapping[str, str] = {}
_HISTORY_BYTES, _TOOLS_BYTES = 64 * 2**20, 8 * 2**20


class DecodeState(Struct, frozen=True):
    """The state of decoding that lasts from one body to the next.

    `shown` is the editor's context in earlier requests. Items of the history and tools
    may be read through a cache, a `CachedReader`.
    """

    shown: ShownContext = field(default_factory=ShownContext)
    read_exchange: Callable[[Json], HistoryItem] = read_exchange
    read_tool: Callable[[Json], ToolDefinition | None] = read_tool

    def forget(self) -> None:
        """Clear the caches."""
        for read in (self.read_exchange, self.read_tool):
            if isinstance(read, CachedReader):
                read.forget()


def make_caching_state(has_room: Callable[[], bool]) -> DecodeState:
    """Return a state with caches, which grow while `has_room` says there is memory."""
    return DecodeState(
        read_exchange=CachedReader(read_exchange, _HISTORY_BYTES, has_room),
        read_tool=CachedReader(read_tool, _TOOLS_BYTES, has_room),
    )


class Defaults(Struct, frozen=True):
    """The user's settings for every request of an endpoint.

    `fit` describes the model that prompts must suit. `compact_tools`: the descriptions
    of tools are shortened. `state` is not a setting, but lasts between requests.
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

        It shares its part of the window with `beside`, another prompt of the request.
        """
        situation = Situation(
            *self.fit,
            frozenset(tools),
            frozenset(conditions),
            count_tokens(beside) if beside else 0,
        )
        return self.prompts.render(name, situation, values)


class ReplyFacts(Struct, frozen=True):
    """Facts that a reply reports besides the model's answer.

    If no model `is_asked`, an empty answer is not a failure. `say` translates byok's
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
        """The fields for unknown blobs; the client uploads each blob in them."""
        return {
            "unknown_blob_names": list(self.unknown),
            "checkpoint_not_found": not self.checkpoint_found,
        }

    def error(self, error: ByokError) -> dict[str, Any]:
        """Return an error in the form of a stream's last line."""
        return self.failure(error.code, error.sentence)

    def failure(self, code: str, message: str) -> dict[str, Any]:
        """Return a failure in the form of a stream's last line."""
        return {"code": code, "message": message, "request_id": self.request_id}


class _Reply(Protocol):
    def feed(self, event: StreamEvent, /) -> Iterable[Json]: ...

    def flush(self) -> Iterable[Json]: ...


class LineReply(_Reply, Protocol):
    """A Stage[StreamEvent, Json] that writes the lines of a streamed reply.

    `first` comes before all other lines, and `heartbeat` is sent during silence, if the
    endpoint's format allows them. Without `keeps_part`, a part of an answer is useless:
    a failure is an HTTP status as long as one can be sent.
    """

    @property
    def keeps_part(self) -> bool:
        """Whether a part of the answer is useful."""
        ...

    @property
    def heartbeat(self) -> Json | None:
        """The line to send during silence."""
        ...

    @property
    def first(self) -> Json | None:
        """The line before all others."""
        ...

    def fail(self, error: ByokError, /) -> Iterable[Json]:
        """Return the lines that end a failed answer."""
        ...


class ObjectReply(_Reply, Protocol):
    """A Stage[StreamEvent, Json] whose flush returns the single object of a reply."""

    def fail_whole(self, error: ByokError, /) -> Json:
        """Return the object for a failed answer, or raise the error."""
        ...


Reply = TypeVar("Reply", bound=_Reply, covariant=True)


class ReplyJob(Struct, Generic[Reply], frozen=True):
    """A decoded client request: the chat for the model, and the writer of the reply.

    Without messages the model is not asked and the reply is empty. `code_question` is
    the search for code, if code will be added to the chat.
    """

    chat: ChatRequest
    reply: Callable[[ReplyFacts], Reply]
    code_question: CodeQuestion | None = None


class Decode(Protocol[Reply]):
    """A decoder of a body.

    Raises:
        BadRequest: 422, a required field is missing.
    """

    def __call__(self, body: Json, defaults: Defaults, /) -> ReplyJob[Reply]:
        """Decode one body."""
        ...
