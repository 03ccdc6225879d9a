"""The interface of a dialect: everything byok needs to know about a model API.

A dialect is one wire protocol, such as OpenAI's Chat Completions. `upstream/` sends and
receives bytes and knows no protocol, so a new dialect is a folder here, a row of
`DIALECTS` below and an address in `presets.py`. The interface was checked against the
protocols of Anthropic, Gemini, Ollama and OpenAI's Responses. Reasons for its form:

- A dialect reads bytes, not events. An earlier client decoded server-sent events for
  all dialects. An API that streams lines of JSON could not be used: its stream looked
  like one document and was buffered until the end. Now the dialect puts a decoder of
  `wire/` in front: `chain(SSEDecoder(), ...)`. Keep it one chain from bytes to events:
  every streamed chunk passes through it.
- A dialect returns all headers, with and without a key. Some APIs refuse a request
  without their version header even where no key is needed.
- A request carries the mapping of tool names. The reader of the answer needs it to
  restore the names that the user's tools have.
- A request carries notices: sentences that tell the user what could not be sent.
- Remedies for refusals are rows of a table, not methods. Which parameter a refusal
  names and where it is nested depends on the dialect. Trying each remedy once per
  request, and remembering it per model, does not.
- The dialect chooses the paths for listing and probing models, and follows pages.

A dialect performs no I/O and has no clock. The state of one answer is in its reader. A
dialect holds only facts about its vendor, and two with the same facts must be equal: on
a reload, equal upstreams keep what they have learned.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ClassVar, Protocol, Self

from msgspec import Struct, field
from msgspec.structs import replace

from byok.core.chat import NO_ORIGIN, ChatRequest, Json, Origin
from byok.core.errors import UpstreamRefused
from byok.core.events import StreamEvent
from byok.core.late import late_function
from byok.core.stage import Stage, chain
from byok.core.wire.sse import SSEDecoder
from byok.dialects.chat_changes import (
    NAMES,
    cap_max_tokens,
    drop_foreign_data,
    name_spelling,
    needed_remedies,
    spell_calls,
)
from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import UNKNOWN_MODEL, ModelFacts
from byok.dialects.presets import (
    ANTHROPIC,
    GEMINI,
    OLLAMA,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
)
from byok.dialects.rate_limits import read_retry_after
from byok.dialects.remedies import Remedy, RemedyTable, change_body, rewrite_chat
from byok.dialects.safe_names import ANY_ID, IdRule, spell_name


class ModelPage(Struct, frozen=True):
    """One page of a list of models; `next_path` is that of the next page, or ""."""

    models: tuple[ModelFacts, ...]
    next_path: str = ""


class Target(Struct, frozen=True):
    """The model that a request is for.

    Attributes:
        model: its name at the upstream.
        extra_body: fields that the user adds to each request.
        facts: what is known about it so far.
        origin: only provider data of this origin may be sent back to the model.
        cache: ask for prompt caching where the protocol has a field for it.
        long_cache: ask for the longest cache lifetime that the protocol offers.
        num_ctx: the context window in tokens with which a local server shall load the
            model; 0 for the server's default.
    """

    model: str
    extra_body: Json = field(default_factory=dict)
    facts: ModelFacts = UNKNOWN_MODEL
    origin: Origin = NO_ORIGIN
    cache: bool = True
    long_cache: bool = False
    num_ctx: int = 0


class UpstreamRequest(Struct, frozen=True):
    """A request to a model, to be sent as JSON.

    Attributes:
        path: relative to the base URL; see `Dialect.url`.
        body: the JSON object, without the user's fields, before any remedies.
        headers: headers of this request, in addition to `Dialect.headers`.
        tool_names: names of the user's tools, by the names that were sent; set by
            `write_request`.
        notices: sentences for the user about what was left out of this turn.
        unsent: such sentences about settings of the whole conversation; in its first
            turn, `write_request` adds them to the notices.
        origin: the origin of provider data in the answer; set by `write_request`.
        num_ctx: the window requested from a local server; set by `write_request`.
    """

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    tool_names: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    unsent: tuple[str, ...] = ()
    origin: Origin = NO_ORIGIN
    num_ctx: int = 0


class ErrorResponse(Struct, frozen=True):
    """An HTTP response with an error status.

    `body` is any JSON value, or the text if it is not JSON. The names in `headers` are
    case-insensitive. `received` is the time in seconds since 1970.
    """

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    received: float = 0.0


class Probe(Struct, frozen=True):
    """A request for facts about one model: a POST of `body` as JSON, or a GET."""

    path: str
    body: Json | None = None


class Codec(Protocol):
    """Encodes requests for one endpoint and decodes its answers.

    In the conversations that it encodes, tool names and call ids already have the form
    that the API accepts, and all provider data are of the target's origin.
    `remedies` is the table of remedies for refusals. `settings` are the body's fields
    that are objects and may be extended by the user's own fields.
    """

    remedies: ClassVar[RemedyTable] = {}
    settings: ClassVar[Collection[str]] = ()

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Encode a conversation as a request."""

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Return a new reader for the bytes of one answer, streamed or whole.

        The reader emits exactly one Finish at the end, or raises an UpstreamError.
        `sent` is the request without its body.
        """

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the remedies that every model needs: `row`, or `row:what`."""
        return ()

    @property
    def tool_ids(self) -> IdRule:
        """Return the rule for the ids of tool calls in a request."""
        return ANY_ID

    def spell_tool(self, name: str, again: int) -> str:
        """Return the form of a tool's name that the API accepts; see `Spelling`."""
        return spell_name(name, again)

    def presumed_remedies(self, facts: ModelFacts) -> tuple[Remedy, ...]:
        """Return the remedies that a model is known to need before any refusal."""
        always = (Remedy(*need.split(":")) for need in self.needs)
        remedies = (*always, *needed_remedies(facts))
        return tuple({remedy.change: remedy for remedy in remedies}.values())


class MakeReader(Protocol):
    """Makes readers of answers; their classes do."""

    def __call__(
        self, tool_names: Mapping[str, str], origin: Origin, /
    ) -> Stage[Any, StreamEvent]:
        """Return a reader; see `UpstreamRequest` for its arguments."""


class Dialect(Codec, Protocol):
    """One wire protocol of model APIs, as one vendor speaks it.

    Attributes:
        name: the key in `DIALECTS`.
        framing: the decoder of the bytes of an answer.
        answer: makes the reader of what it decodes.
        serves: the paths below the base URL that speak a protocol of byok's own /v1,
            such as `chat/completions`: requests to it can be forwarded to them.
        loads_window: a request tells the server with which window to load the model.
        sends_thoughts: the model's earlier reasoning is sent back with the next prompt.
        models_path: the path of the model list, or of its first page.
    """

    name: ClassVar[str]
    framing: ClassVar[type[Stage[bytes, Any]]] = SSEDecoder
    answer: ClassVar[MakeReader]
    loads_window: ClassVar[bool] = False
    sends_thoughts: ClassVar[bool] = False
    serves: ClassVar[frozenset[str]] = frozenset()
    models_path: ClassVar[str] = "models"

    @property
    def second_best(self) -> frozenset[str]:
        """Return the paths of `serves` that another API of the vendor answers better.

        Where that API is used, requests for these paths are translated for it.
        """
        return frozenset()

    def url(self, base_url: str, path: str) -> str:
        """Return the URL of a path, which may contain a query."""
        return f"{base_url}/{path}"

    @classmethod
    def of(cls, vendor: str) -> Self:
        """Return the dialect as a vendor, given by its preset's name, speaks it."""
        return cls()

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Return a new reader for the bytes of one answer; see `Codec.reader`."""
        return chain(self.framing(), self.answer(sent.tool_names, sent.origin))

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers of every request; `key` is "" without an API key."""

    def refusal(self, response: ErrorResponse) -> UpstreamRefused:
        """Decode an error response: its body, and from its headers when to retry."""
        wait = read_retry_after(response.headers, response.received)
        return refusal_of(response.body, response.status, wait, response.received)

    def read_models(self, body: Any) -> ModelPage:
        """Decode a page of the model list; any other JSON is an empty page."""

    def probes(self, model: str) -> tuple[Probe, ...]:
        """Return the requests for facts about one model; the first answer counts."""
        return ()

    def read_probe(self, body: Any, model: str) -> ModelFacts:
        """Decode the response to one of `probes`, which may be any JSON value."""
        return ModelFacts(model)


def make_headers(key: str, name: str = "Authorization") -> dict[str, str]:
    """Return headers with the key in one of this name, if there is a key.

    `Authorization` takes `Bearer <key>`.
    """
    headers = {"Accept": "text/event-stream, application/json"}
    if key:
        headers[name] = f"Bearer {key}" if name == "Authorization" else key
    return headers


def write_request(
    codec: Codec,
    chat: ChatRequest,
    target: Target,
    made: Iterable[Remedy] = (),
    new: Iterable[Remedy] = (),
) -> tuple[ChatRequest, UpstreamRequest]:
    """Apply the remedies of the model to a conversation, and encode it.

    Returns the rewritten conversation, in which tools and calls keep their original
    names and ids, and the request. `made` are the remedies to apply besides the
    presumed ones; notices about the `new` ones among them are always included.
    """
    table, new = codec.remedies, tuple(new)
    remedies = (*codec.presumed_remedies(target.facts), *made)
    spellings = [name_spelling(remedy) for remedy in remedies if remedy.change == NAMES]
    others = [remedy for remedy in remedies if remedy.change != NAMES]
    rewritten, chat_notices = rewrite_chat(table, chat, others, new=new)
    spell_tool = [codec.spell_tool, *spellings][-1]
    spelled, names = spell_calls(rewritten, spell_tool, codec.tool_ids)
    spelled = drop_foreign_data(spelled, target.origin)
    sent = codec.encode(cap_max_tokens(spelled, target.facts), target)
    body = _add_fields(sent.body, target.extra_body, codec.settings)
    body, body_notices = change_body(table, body, remedies, chat=chat, new=new)
    unsent = sent.unsent if chat.is_first_turn else ()
    sent = replace(
        sent,
        body=body,
        tool_names=names,
        notices=(*unsent, *sent.notices, *chat_notices, *body_notices),
        origin=target.origin,
        num_ctx=target.num_ctx,
    )
    return rewritten, sent


def _add_fields(body: Json, extra: Json, settings: Collection[str]) -> dict[str, Any]:
    """Add the user's fields: tools to the list of tools, settings to their object.

    So a web search of the vendor joins the tools, and `top_k` joins the temperature.
    """
    merged = dict(body)
    for name, value in extra.items():
        sent = merged.get(name)
        if name in settings and isinstance(sent, dict) and isinstance(value, dict):
            merged[name] = {**sent, **value}
        elif name == "tools" and isinstance(sent, list) and isinstance(value, list):
            merged[name] = [*sent, *value]
        else:
            merged[name] = value
    return merged


# The dialects, by the name used in config.toml. Each is created for a vendor (the name
# of a preset, or openai_compatible), and its module is loaded only then.
DIALECTS: dict[str, Callable[[str], Dialect]] = {
    OPENAI_CHAT: late_function("byok.dialects.openai_chat.dialect:OpenAIChat.of"),
    GEMINI: late_function("byok.dialects.gemini.dialect:Gemini.of"),
    OLLAMA: late_function("byok.dialects.ollama.dialect:Ollama.of"),
    ANTHROPIC: late_function("byok.dialects.anthropic.dialect:AnthropicMessages.of"),
    OPENAI_RESPONSES: late_function(
        "byok.dialects.openai_responses.dialect:OpenAIResponses.of"
    ),
}
