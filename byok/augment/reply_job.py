"""What a request becomes: a question for a model, and how the answer is written."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from byok.chat import ChatRequest, Json, Sampling
from byok.code_query import CodeQuestion, FileChunk
from byok.errors import ByokError
from byok.events import StreamEvent


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the user configured for every request of an endpoint."""

    system_prompt: str = ""
    addition: str = ""
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True, slots=True)
class ReplyFacts:
    """What an answer tells besides the model's words."""

    request_id: str = ""
    unknown: tuple[str, ...] = ()
    checkpoint_found: bool = True
    chunks: tuple[FileChunk, ...] = ()

    @property
    def fields(self) -> dict[str, Any]:
        """What is unknown of the client's blobs. Each name makes a client upload."""
        return {
            "unknown_blob_names": list(self.unknown),
            "checkpoint_not_found": not self.checkpoint_found,
        }

    def error(self, error: ByokError) -> dict[str, Any]:
        """Write an error as the last line of a stream carries it."""
        return {
            "code": error.code,
            "message": error.sentence,
            "request_id": self.request_id,
        }


class _Reply(Protocol):
    @property
    def omitted_tools(self) -> Sequence[str]: ...

    def feed(self, event: StreamEvent, /) -> Iterable[Json]: ...

    def flush(self) -> Iterable[Json]: ...


class LineReply(_Reply, Protocol):
    """Stage[StreamEvent, Json]: the lines of a streamed answer.

    `first` stands before everything else, and `heartbeat` is sent in silence, where
    the endpoint's shape has room for them. An answer that is broken off is of use
    only where `keeps_part` says so.
    """

    @property
    def keeps_part(self) -> bool:
        """Whether a part of the answer is of use."""
        ...

    @property
    def heartbeat(self) -> Json | None:
        """The line to send in silence."""
        ...

    @property
    def first(self) -> Json | None:
        """The line before everything else."""
        ...

    def fail(self, error: ByokError, /) -> Iterable[Json]:
        """Give the lines that end a broken answer."""
        ...


class ObjectReply(_Reply, Protocol):
    """Stage[StreamEvent, Json]: the single object of an answer, given by flush."""

    def fail_whole(self, error: ByokError, /) -> Json:
        """Give the object that stands for a broken answer, or raise the error."""
        ...


Reply = TypeVar("Reply", bound=_Reply, covariant=True)


@dataclass(frozen=True, slots=True)
class ReplyJob(Generic[Reply]):
    """A decoded client request: the question for the model and how to write the reply.

    Without messages the model is not asked and the reply is empty. `wanted` is the
    question about code, if code is to be added to the chat.
    """

    chat: ChatRequest
    reply: Callable[[ReplyFacts], Reply]
    wanted: CodeQuestion | None = None


class Decode(Protocol[Reply]):
    """Understands a body, and tells node types that it does not know.

    Raises:
        BadRequest: 422, what the request is about is missing.
    """

    def __call__(
        self, body: Json, defaults: Defaults, on_node: Callable[[int], None], /
    ) -> ReplyJob[Reply]:
        """Read one body."""
        ...


def ignore_kind(kind: int) -> None:
    """Take no note of a kind of node, where a body has none or is read twice."""
