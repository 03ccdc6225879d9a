"""The seam between byok and the APIs of models: what a dialect must be able to say.

A dialect is one wire protocol, such as OpenAI's Chat Completions. All that byok knows
of a protocol is behind this seam; `upstream/` carries bytes and knows none of it. So a
new protocol is a folder here, a row in `registry.py` and an address in `presets.py`.

Where the seam runs was found out by trying other protocols against it:

- A dialect reads bytes, not events. As long as the client read server-sent events for
  all of them, an API that streams lines of JSON could not be spoken: its answer looked
  like one document and was held until the end. Framing is a stage of `wire/` that the
  dialect puts before its own: `chain(SSEDecoder(), ...)`.
- A dialect gives the headers of each request, with and without a key: some APIs refuse
  what lacks their version header, though no key is needed.
- A request carries its names and ids both ways, since the reader of the answer must
  find the tool that the user knows; and what was left out of it, since nothing is
  dropped without a word.
- Remedies are rows of a table. Which parameter a refusal names, and where in the body
  it is, depends on the dialect; that each remedy is made once a request and remembered
  for the model does not.
- Lists of models come in pages, from paths and with fields of the dialect's own, and so
  does the question how a local server has loaded one.

A dialect performs no I/O and knows no clock. What it must remember during an answer is
in the reader of that answer; else it holds only facts about the vendor that it is made
for, and two dialects of the same facts are equal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from byok.chat import NO_ORIGIN, ChatRequest, Json, Origin
from byok.dialects.remedies import Remedy, RemedyTable
from byok.errors import UpstreamRefused
from byok.events import StreamEvent
from byok.stage import Stage


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What an upstream says of one of its models; 0 and None are unknown.

    `window` is how many tokens a prompt and its answer may have, `max_output` the
    answer alone. The others say whether it takes tools or pictures, and whether it
    thinks.
    """

    id: str
    window: int = 0
    max_output: int = 0
    tools: bool | None = None
    images: bool | None = None
    thinking: bool | None = None


UNKNOWN_MODEL = ModelFacts("")


@dataclass(frozen=True, slots=True)
class ModelPage:
    """One page of a list of models; `next_path` leads to the next one, "" ends it."""

    models: tuple[ModelFacts, ...]
    next_path: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a request is for.

    `model` is its name there, `facts` what is known of it by now. `extra_body` are
    fields that the user adds to each request. `origin` is that of provider data which
    this very model may get back.
    """

    model: str
    extra_body: Json = field(default_factory=dict)
    facts: ModelFacts = UNKNOWN_MODEL
    origin: Origin = NO_ORIGIN


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request that is ready to be sent as JSON.

    Attributes:
        path: relative to the base URL; see `Dialect.url`.
        body: what is sent, before any remedies.
        headers: those of this request, beside `Dialect.headers`.
        tool_names: the names that the user's tools have, by the names that were sent.
        call_ids: the ids of tool calls in the conversation, by the ids that were sent.
        notices: sentences for the user on what had to be left out.
        origin: that of the target, for provider data in the answer; set by whoever
            sends the request.
    """

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    tool_names: Mapping[str, str] = field(default_factory=dict)
    call_ids: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    origin: Origin = NO_ORIGIN


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An answer with an error status.

    `body` is any JSON, or text; `headers` finds names in any case of their letters, and
    `received` is when it came, in seconds since 1970.
    """

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    received: float = 0.0


@dataclass(frozen=True, slots=True)
class Probe:
    """A question about one model: a POST of `body` as JSON, or a GET without one."""

    path: str
    body: Json | None = None


class Codec(Protocol):
    """Writes one kind of request and reads its answer.

    `remedies` is its table of remedies for refusals.
    """

    remedies: ClassVar[RemedyTable] = {}

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Write a conversation as this API wants to read it."""
        ...

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Give a fresh reader for the bytes of one answer, streamed or whole.

        It ends with exactly one Finish, or raises an UpstreamError. The body of `sent`
        is gone by then.
        """
        ...

    def initial_remedies(self, model: str) -> tuple[Remedy, ...]:
        """Return the changes that a model is known to need before any refusal."""
        return ()


class Dialect(Codec, Protocol):
    """One wire protocol of model APIs, as one vendor speaks it.

    Attributes:
        name: the key in the registry.
        speaks_openai: whether the same base URL serves OpenAI's endpoints, to which
            byok passes on what comes to /v1.
        sends_thoughts: whether the model's earlier thoughts are sent back to it.
    """

    name: ClassVar[str]
    speaks_openai: ClassVar[bool] = False

    @property
    def sends_thoughts(self) -> bool:
        """Whether the model's earlier thoughts are part of the next prompt."""
        return False

    def url(self, base_url: str, path: str) -> str:
        """Return the whole URL of a path, which may hold a query."""
        return f"{base_url}/{path}"

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers of every request; `key` is "" where none is needed."""
        ...

    def refusal(self, response: ErrorResponse) -> UpstreamRefused:
        """Make the error of an answer with an error status."""
        ...

    def models_path(self) -> str:
        """Return the path of the list of models, or of its first page."""
        ...

    def read_models(self, body: Any) -> ModelPage:
        """Read a page of the list; any JSON that is none is an empty one."""
        ...

    def probe(self, model: str) -> Probe | None:
        """Return the question how a server has loaded a model, if it can be asked."""
        return None

    def read_probe(self, body: Any, model: str) -> ModelFacts:
        """Read the answer to `probe`, which may be any JSON."""
        return ModelFacts(model)
