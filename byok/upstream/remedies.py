"""Remedies in use: applied to a request after a refusal, and remembered per model."""

import logging
from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.chat import ChatRequest, Json, Origin
from byok.core.errors import (
    ContextLengthExceeded,
    RefusalKind,
    UpstreamError,
    UpstreamRefused,
)
from byok.core.wire.json_body import write_json
from byok.dialects.base import Codec, Target, UpstreamRequest, write_request
from byok.dialects.model_facts import FactSource, ModelFacts, combine_facts
from byok.dialects.remedies import RefusedRequest, Remedy, find_remedy
from byok.upstream.model_facts import Profiles, newest_of_each
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.window.estimate import weigh, weigh_tools

_log = logging.getLogger(__name__)
_MAX_MODELS = 1000
_MAX_NEW_REMEDIES = 12  # for one request; the next request begins with them
_MAX_AGE_SECONDS = 30 * 86_400  # of remedies in a profile
_MAX_AGE_OF_LOSSES = 86_400  # seconds; of those that take something from the user

# Sizes of context windows, in tokens
_FIRST_AGENT_SIZE, _FIRST_CHAT_SIZE = 32_768, 8_192  # agents read files
_MAX_UNKNOWN_SIZE = 65_536  # of a model of which nothing is known
_SERVER_DEFAULT_SIZE = 4_096  # of Ollama; byok requests no smaller one
_MAX_WINDOW_MEMORY = 8 * 2**30  # bytes
_SIZE_DESPITE_MEMORY = 16_384  # may take more than _MAX_WINDOW_MEMORY
_BYTES_A_TOKEN = 3.0  # fewer than most texts have
_DEFAULT_ANSWER_TOKENS = 4_096  # of an answer of unknown length

# The remedies of each model, by its codec.
KnownRemedies: TypeAlias = dict[tuple[object, str], tuple[Remedy, ...]]


class Remedies:
    """The remedies that each model of an upstream is known to need.

    With `profiles` they are stored in files, so that a restart does not repeat the
    requests that were refused. A start more than a day later forgets those that take
    something away from the user: the server may be configured differently by then.
    """

    def __init__(self, spec: UpstreamSpec, profiles: Profiles | None = None) -> None:
        self.spec = spec
        self._profiles = profiles
        self._known: KnownRemedies = {}
        self.sizes = ContextSizes(spec.num_ctx)

    def begin(self, facts: ModelFacts, fim: Codec | None = None) -> "RequestRemedies":
        """Return the remedies for a request to a model, in its dialect or for FIM."""
        api = (not fim and self.spec.find_api(facts.dialect)) or self.spec.api
        codec = fim or api.dialect
        applied = self.known(codec, facts.id)
        return RequestRemedies(self, facts, api, codec, applied).follow_switches()

    def known(self, codec: Codec, model: str) -> tuple[Remedy, ...]:
        """Return the remedies that a model is known to need in a codec."""
        key = (codec, model)  # slow to hash
        if (known := self._known.get(key)) is None:
            if len(self._known) > _MAX_MODELS:
                self._known.clear()
            known = self._known[key] = tuple(self._read(codec, model))
        return known

    def remember(self, codec: Codec, model: str, applied: tuple[Remedy, ...]) -> None:
        """Apply remedies to later requests from the start."""
        known = self.known(codec, model)
        if applied == known:
            return
        new = [remedy for remedy in applied if remedy not in known]
        merged = newest_of_each([*known, *new], lambda remedy: remedy.change)
        self._known[codec, model] = tuple(merged)
        if new and self._profiles and (name := self._name_of(codec)):
            self._profiles.add_remedies(self.spec.key, model, name, new)

    def _read(self, codec: Codec, model: str) -> Iterator[Remedy]:
        """Yield the remedies in the profile of a model that are not too old."""
        name = self._name_of(codec)
        if self._profiles is None or not name:
            return
        for remedy, age in self._profiles.remedies(self.spec.key, model, name):
            row = codec.remedies.get(remedy.change)
            if row and age < (_MAX_AGE_OF_LOSSES if row.notice else _MAX_AGE_SECONDS):
                yield remedy

    def _name_of(self, codec: Codec) -> str:
        """Return the name of a dialect; codecs for FIM have none."""
        apis = (api.dialect for api in self.spec.apis)
        return next((dialect.name for dialect in apis if dialect == codec), "")

    def save(self) -> KnownRemedies:
        """Return a copy of all remedies, for `restore`."""
        return dict(self._known)

    def restore(self, saved: KnownRemedies) -> None:
        """Forget what was learned since `save`."""
        self._known = saved


class WrittenRequest(Struct, frozen=True):
    """An encoded request: its head, and the JSON text of its body."""

    head: UpstreamRequest
    content: bytes


class RequestRemedies(Struct, frozen=True):
    """How one request to a model is encoded: in which dialect, with which remedies.

    It is immutable: `add_remedy` returns another one.

    Attributes:
        upstream: the remedies of all models of the upstream.
        facts: the known facts about the model.
        api: the API in use, for which `codec` encodes; a remedy may switch to another.
        applied: the remedies in use, of which `new` were found for this request.
        earlier: the APIs for which the request was encoded before, each with its
            remedies.
        remaining: how many more remedies may be found.
    """

    upstream: Remedies
    facts: ModelFacts
    api: Api
    codec: Codec
    applied: tuple[Remedy, ...] = ()
    new: tuple[Remedy, ...] = ()
    earlier: tuple[tuple[Api, tuple[Remedy, ...]], ...] = ()
    remaining: int = _MAX_NEW_REMEDIES

    def write(self, chat: ChatRequest) -> WrittenRequest:
        """Encode the request with all remedies; only the bytes contain its body."""
        _, request = self._encode(chat)
        return WrittenRequest(replace(request, body={}), write_json(request.body))

    def add_remedy(
        self, error: UpstreamError, chat: ChatRequest, sent: UpstreamRequest
    ) -> "RequestRemedies | None":
        """Return how to encode a refused request next; None if no remedy helps.

        `sent` is the head of the request that was sent for `chat`.
        """
        if not isinstance(error, UpstreamRefused) or not self.remaining:
            return None
        if self.api.dialect.loads_window and self.upstream.sizes.adapt(
            self.facts, sent.num_ctx, error
        ):
            return replace(self, remaining=self.remaining - 1)
        rewritten, request = self._encode(chat)
        refused = RefusedRequest(
            request.body,
            error,
            extra=tuple(self._extra_body),
            known=self.applied,
            dialects=tuple(
                api.dialect.name
                for api in self.upstream.spec.apis
                if api.dialect.name not in self._tried_dialects
            ),
            chat=rewritten,
            tool_names=request.tool_names,
        )
        remedy = find_remedy(self.codec.remedies, refused)
        if remedy is None:
            return None
        _log.info(
            "%s: %.80s refuses a request; changed: %s",
            self.upstream.spec.name,
            self.facts.id,
            remedy.change,
        )
        extended = replace(
            self,
            applied=(*self.applied, remedy),
            new=(*self.new, remedy),
            remaining=self.remaining - 1,
        )
        if not extended.remaining:
            extended.remember()  # the next request continues from here
        return extended.follow_switches()

    def remember(self) -> None:
        """Apply these remedies to later requests from the start: the model answered.

        Remedies that did not help are forgotten: a tool would be left out for nothing.
        """
        for api, applied in self.earlier:
            self.upstream.remember(api.dialect, self.facts.id, applied)
        self.upstream.remember(self.codec, self.facts.id, self.applied)

    def learned_facts(self) -> ModelFacts:
        """Return the facts that the applied remedies imply; later ones prevail."""
        steps = (
            *((api.dialect, applied) for api, applied in self.earlier),
            (self.codec, self.applied),
        )
        layers = [
            (FactSource.REFUSAL, row.teaches(remedy))
            for codec, applied in reversed(steps)
            for remedy in reversed(applied)
            if (row := codec.remedies.get(remedy.change))
        ]
        return combine_facts(self.facts.id, layers).facts

    def follow_switches(self) -> "RequestRemedies":
        """Return how to encode in the dialect to which the remedies switch, if any."""
        for remedy in self.applied:
            row = self.codec.remedies.get(remedy.change)
            if row is None or not row.switches or remedy.what in self._tried_dialects:
                continue
            if api := self.upstream.spec.find_api(remedy.what):
                switched = replace(
                    self,
                    api=api,
                    codec=api.dialect,
                    applied=self.upstream.known(api.dialect, self.facts.id),
                    earlier=(*self.earlier, (self.api, self.applied)),
                )
                return switched.follow_switches()
        return self

    @property
    def _tried_dialects(self) -> set[str]:
        apis = (*(api for api, _ in self.earlier), self.api)
        return {api.dialect.name for api in apis}

    @property
    def _extra_body(self) -> Json:
        """The user's fields, which are meant for the first dialect."""
        spec = self.upstream.spec
        return spec.extra_body if self.api is spec.api else {}

    def _encode(self, chat: ChatRequest) -> tuple[ChatRequest, UpstreamRequest]:
        """Return the conversation as the remedies change it, and its request."""
        spec, num_ctx = self.upstream.spec, 0
        if self.api.dialect.loads_window:
            num_ctx = self.upstream.sizes.choose(chat, self.facts)
        origin = Origin(self.api.dialect.name, spec.name, self.facts.id)
        target = Target(
            self.facts.id,
            self._extra_body,
            self.facts,
            origin,
            cache=spec.cache,
            long_cache=spec.long_cache,
            num_ctx=num_ctx,
        )
        return write_request(self.codec, chat, target, self.applied, self.new)


class ContextSizes:
    """The window sizes with which a local server is asked to load its models.

    Ollama loads a model with the window that a request asks for, and loads it again,
    which takes seconds to minutes, when the next request asks for another one. So there
    are few sizes, and the size of a model grows but never shrinks.

    A large window takes memory for the keys and values of its tokens, beside the model.
    The server does not report how much memory it has. So byok by itself requests at
    most 8 GiB of it: 64k tokens for most models of 8 to 30 billion parameters. If the
    server refuses that as too much, byok requests half of it.

    `configured` is the user's size for all models, 0 for none.
    """

    def __init__(self, configured: int = 0) -> None:
        self._configured = configured
        self._sizes = BoundedMap[str, int](_MAX_MODELS)
        self._memory_limits = BoundedMap[str, int](_MAX_MODELS)  # tokens, by refusals

    def limit(self, facts: ModelFacts) -> int:
        """Return the largest size for a model in tokens, 0 if its window is unknown."""
        if self._configured:
            return min(self._configured, facts.window or self._configured)
        if not facts.window:
            return 0
        limit = facts.window
        if facts.token_memory:
            fitting = _MAX_WINDOW_MEMORY // facts.token_memory
            limit = min(limit, max(fitting, _SIZE_DESPITE_MEMORY))
        limit = max(limit, min(facts.loaded_window, facts.window))
        return min(limit, self._memory_limits.get(facts.id) or limit)

    def choose(self, chat: ChatRequest, facts: ModelFacts) -> int:
        """Return the size for a request, 0 for the server's own choice.

        The server chooses if it knows the window of a model but not its memory: such
        models run elsewhere, and with their whole window.
        """
        if self._configured:
            return self.limit(facts)
        model = facts.id
        stored = size = self._sizes.get(model) or 0
        if facts.window and not facts.token_memory and not size:
            return 0
        limit = self._limit_or_default(facts)
        size = max(size, min(facts.loaded_window, limit))
        needed = max(_estimate_tokens(chat), _FIRST_AGENT_SIZE if chat.tools else 0)
        if size < needed or not size:
            size = min(_round_up(max(needed, _FIRST_CHAT_SIZE)), limit)
        if size > stored:
            self._store(model, size)
        return max(size, stored)

    def adapt(self, facts: ModelFacts, sent: int, error: UpstreamRefused) -> bool:
        """Choose another size after a refusal of `sent`; False if there is none.

        If an overflow error names no window, `sent` is entered as its window.
        """
        if self._configured and isinstance(error, ContextLengthExceeded):
            error.window = error.window or sent
        if self._configured:
            return False
        if isinstance(error, ContextLengthExceeded):
            return self._grow(facts, sent, error)
        if error.kind is RefusalKind.NO_MEMORY and sent > _SERVER_DEFAULT_SIZE:
            size = max(sent // 2, _SERVER_DEFAULT_SIZE)
            self._memory_limits[facts.id] = size
            self._store(facts.id, size)
            return True
        return False

    def _grow(self, facts: ModelFacts, sent: int, error: ContextLengthExceeded) -> bool:
        limit = self._limit_or_default(facts)
        if sent < limit:
            counted = (error.counted or 0) + _DEFAULT_ANSWER_TOKENS
            needed = max(2 * sent, counted, _FIRST_AGENT_SIZE)
            self._store(facts.id, min(_round_up(needed), limit))
            return True
        if facts.window:
            error.window = error.window or sent
        return False

    def _limit_or_default(self, facts: ModelFacts) -> int:
        known = self.limit(facts) or self._memory_limits.get(facts.id)
        return known or _MAX_UNKNOWN_SIZE

    def _store(self, model: str, size: int) -> None:
        self._sizes[model] = size
        _log.info("%.80s is asked for with a window of %d tokens", model, size)


def _estimate_tokens(chat: ChatRequest) -> int:
    weight = weigh_tools(chat.tools) + sum(map(weigh, chat.messages))
    if chat.fim is not None:
        weight = len(chat.fim.prefix.encode()) + len(chat.fim.suffix.encode())
    answer = chat.sampling.max_tokens or _DEFAULT_ANSWER_TOKENS
    return int(weight / _BYTES_A_TOKEN) + answer


def _round_up(tokens: int) -> int:
    """Return the next power of two, so that there are few sizes."""
    return 1 << (tokens - 1).bit_length()
