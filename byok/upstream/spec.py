"""The specification of an upstream: its APIs and how they are reached, without keys."""

from collections.abc import Mapping

from msgspec import Struct, field

from byok.core.chat import Json
from byok.core.urls import is_loopback
from byok.dialects.base import Codec, Dialect
from byok.dialects.fim_templates import FimMode
from byok.dialects.model_facts import ModelFacts
from byok.upstream.retry import PATIENCE
from byok.upstream.timeouts import REASONING, REMOTE, Timeouts
from byok.upstream.transport import Route


class Api(Struct, frozen=True):
    """One API of an upstream: its dialect and its base URL."""

    dialect: Dialect
    base_url: str

    def url(self, path: str) -> str:
        """Return the URL of a path; see `Dialect.url`."""
        return self.dialect.url(self.base_url, path)


class UpstreamSpec(Struct, frozen=True):
    """One upstream of the settings.

    Attributes:
        name: the name in the settings.
        apis: all of one origin; the first is used unless a model needs another one.
        timeouts: for its requests.
        reasoning_timeouts: for chats with models that reason.
        patience: the seconds that a chat waits for it in all, while it is overloaded or
            limits requests.
        breaker_pause: the seconds for which the circuit breaker stays open.
        query: parameters that are added to every URL.
        headers: further headers of every request.
        extra_body: further fields of every request in the first dialect.
        cache: whether to request prompt caching, and `long_cache` for as long as the
            API offers.
        num_ctx: the context window with which a local server loads models; 0 if byok
            decides.
        route: proxy and certificates.
        vendor: the name of its preset, whose models these are; "" if it is unknown.
        facts: the user's facts about models, by their names; "" is for all of them.
        fim: codecs for FIM by mode, in the order of trial; None stands for a chat.
        next_edit: codecs for models that are made for next edits, by mode.
    """

    name: str
    apis: tuple[Api, ...]
    timeouts: Timeouts = REMOTE
    reasoning_timeouts: Timeouts = REASONING
    patience: float = PATIENCE
    breaker_pause: float = 30.0
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    extra_body: Json = field(default_factory=dict)
    cache: bool = True
    long_cache: bool = False
    num_ctx: int = 0
    route: Route = field(default_factory=Route)
    vendor: str = ""
    facts: Mapping[str, ModelFacts] = field(default_factory=dict)
    fim: Mapping[FimMode, Codec | None] = field(
        default_factory=lambda: {FimMode.CHAT: None}
    )
    next_edit: Mapping[FimMode, Codec] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name in files, which distinguishes upstreams of the same name."""
        return f"{self.name}@{self.api.base_url}"

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine."""
        return is_loopback(self.api.base_url)

    @property
    def api(self) -> Api:
        """The API that is used unless a model needs another one."""
        return self.apis[0]

    def timeouts_for(self, facts: ModelFacts) -> Timeouts:
        """Return the timeouts of a chat with a model."""
        return self.reasoning_timeouts if facts.thinking else self.timeouts

    def find_api(self, dialect: str) -> Api | None:
        """Return the API of a dialect, named as in the registry, or None."""
        matches = (api for api in self.apis if api.dialect.name == dialect)
        return next(matches, None)

    def find_serving(self, path: str) -> Api | None:
        """Return the API to which requests for a path of /v1 are forwarded, or None."""
        for api in self.apis:
            is_best = api is self.api or path not in api.dialect.second_best
            if is_best and path in api.dialect.serves:
                return api
        return None
