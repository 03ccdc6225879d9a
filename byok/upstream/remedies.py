"""Remedies in use: tried once a request after a refusal, remembered per model."""

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

# How large a window a local server loads each model with.
#
# Ollama loads a model with the window that a request asks for, and loads it again,
# which takes seconds to minutes, when the next request asks for another one. So windows
# are of few sizes, and a model's grows but never shrinks.
#
# A large window takes memory for the keys and values of its tokens, beside the model.
# How much memory the server has cannot be asked. So byok asks for at most 8 GiB of it
# by itself: 64k tokens for most models of 8 to 30 billion parameters. If the server
# says that this is too much, half of it is asked for.


_log = logging.getLogger(__name__)
_MEMORY = 8 * 2**30  # bytes for the window
_LEAST_MOST = 16_384  # tokens that are used in spite of that
_MOST_UNKNOWN = 65_536  # where nothing is known of a model
_AGENT, _CHAT = 32_768, 8_192  # the first sizes; agents read files
_BYTES_A_TOKEN = 3.0  # fewer than most texts have
_ANSWER = 4_096  # tokens for an answer of unknown length
_NO_LESS = 4_096  # the server's own default
_MAX_SIZES = 1000


class ContextSizes:
    """The sizes in use, by model; `configured` is the user's for all, 0 for none."""

    def __init__(self, configured: int = 0) -> None:
        self._configured = configured
        self._chosen = BoundedMap[str, int](_MAX_SIZES)
        self._most = BoundedMap[str, int](_MAX_SIZES)  # what fitted into memory

    def limit(self, facts: ModelFacts) -> int:
        """Return the largest size for a model in tokens, 0 if its window is unknown."""
        if self._configured:
            return min(self._configured, facts.window or self._configured)
        if not facts.window:
            return 0
        most = facts.window
        if facts.token_memory:
            most = min(most, max(_MEMORY // facts.token_memory, _LEAST_MOST))
        most = max(most, min(facts.loaded_window, facts.window))
        return min(most, self._most.get(facts.id) or most)

    def choose(self, chat: ChatRequest, facts: ModelFacts) -> int:
        """Return the size for a request, 0 for the server's own.

        That is used where the server knows the length of a model but not its memory:
        such models run elsewhere, and with their whole length.
        """
        if self._configured:
            return self.limit(facts)
        model = facts.id
        chosen = now = self._chosen.get(model) or 0
        if facts.window and not facts.token_memory and not now:
            return 0
        most = self.limit(facts) or self._most.get(model) or _MOST_UNKNOWN
        now = max(now, min(facts.loaded_window, most))
        need = max(_estimate(chat), _AGENT if chat.tools else 0)
        if now < need or not now:
            now = min(_round_up(max(need, _CHAT)), most)
        if now > chosen:
            self._keep(model, now)
        return max(now, chosen)

    def follow(self, facts: ModelFacts, sent: int, error: UpstreamRefused) -> bool:
        """Choose another size after a refusal of `sent`; False if there is none.

        An overflow that names no window gets the size that was sent.
        """
        if self._configured and isinstance(error, ContextLengthExceeded):
            error.window = error.window or sent
        if self._configured:
            return False
        if isinstance(error, ContextLengthExceeded):
            return self._grow(facts, sent, error)
        if error.kind is RefusalKind.NO_MEMORY and sent > _NO_LESS:
            size = self._most[facts.id] = max(sent // 2, _NO_LESS)
            self._keep(facts.id, size)
            return True
        return False

    def _grow(self, facts: ModelFacts, sent: int, error: ContextLengthExceeded) -> bool:
        most = self.limit(facts) or self._most.get(facts.id) or _MOST_UNKNOWN
        if sent < most:
            need = max(2 * sent, (error.counted or 0) + _ANSWER, _AGENT)
            self._keep(facts.id, min(_round_up(need), most))
            return True
        if facts.window:
            error.window = error.window or sent
        return False

    def _keep(self, model: str, size: int) -> None:
        self._chosen[model] = size
        _log.info("%.80s is asked for with a window of %d tokens", model, size)


def _estimate(chat: ChatRequest) -> int:
    """Estimate the tokens of a prompt and its answer."""
    weight = weigh_tools(chat.tools) + sum(map(weigh, chat.messages))
    if chat.fim is not None:
        weight = len(chat.fim.prefix.encode()) + len(chat.fim.suffix.encode())
    answer = chat.sampling.max_tokens or _ANSWER
    return int(weight / _BYTES_A_TOKEN) + answer


def _round_up(tokens: int) -> int:
    """Return the next size: a power of two, so that there are few."""
    return 1 << (tokens - 1).bit_length()


# Of each model, by its codec.
KnownRemedies: TypeAlias = dict[tuple[object, str], tuple[Remedy, ...]]
_MAX_MODELS = 1000
_SECONDS = 30 * 86_400  # for which remedies are kept in a profile
_LOSS_SECONDS = 86_400  # and those with which a user misses something
_MOST = 12  # new ones for one request; the next request begins with them


class Remedies:
    """The remedies that each model of an upstream is known to need.

    With `profiles` they outlast the daemon, so that a restart does not repeat the
    requests that were refused. A start more than a day later forgets those that take
    something away from the user: the server may be set up otherwise by then.
    """

    def __init__(self, spec: UpstreamSpec, profiles: Profiles | None = None) -> None:
        self.spec = spec
        self._profiles = profiles
        self._known: KnownRemedies = {}
        self.sizes = ContextSizes(spec.num_ctx)

    def begin(self, facts: ModelFacts, fim: Codec | None = None) -> "RequestRemedies":
        """Start a request to a model, in a codec for FIM or in a dialect."""
        api = (not fim and self.spec.find_api(facts.dialect)) or self.spec.api
        codec = fim or api.dialect
        made = self.known(codec, facts.id)
        return RequestRemedies(self, facts, api, codec, made).follow_switches()

    def known(self, codec: Codec, model: str) -> tuple[Remedy, ...]:
        """Return the remedies that a model is known to need in a codec."""
        key = (codec, model)  # slow to hash
        if (known := self._known.get(key)) is None:
            if len(self._known) > _MAX_MODELS:
                self._known.clear()
            known = self._known[key] = tuple(self._read(codec, model))
        return known

    def remember(self, codec: Codec, model: str, made: tuple[Remedy, ...]) -> None:
        """Use remedies in later requests from the start."""
        known = self.known(codec, model)
        if made == known:
            return
        new = [remedy for remedy in made if remedy not in known]
        kept = newest_of_each([*known, *new], lambda remedy: remedy.change)
        self._known[codec, model] = tuple(kept)
        if new and self._profiles and (name := self._name_of(codec)):
            self._profiles.add_remedies(self.spec.key, model, name, new)

    def _read(self, codec: Codec, model: str) -> Iterator[Remedy]:
        """Yield what the profile of a model has."""
        name = self._name_of(codec)
        if self._profiles is None or not name:
            return
        for remedy, age in self._profiles.remedies(self.spec.key, model, name):
            row = codec.remedies.get(remedy.change)
            if row and age < (_LOSS_SECONDS if row.notice else _SECONDS):
                yield remedy

    def _name_of(self, codec: Codec) -> str:
        """Return the name of a dialect; codecs for FIM have none."""
        apis = (api.dialect for api in self.spec.apis)
        return next((dialect.name for dialect in apis if dialect == codec), "")

    def save(self) -> KnownRemedies:
        """Return what is known by now, for `restore`."""
        return dict(self._known)

    def restore(self, saved: KnownRemedies) -> None:
        """Forget what was learned since `save`."""
        self._known = saved


class WrittenRequest(Struct, frozen=True):
    """A request as it is sent: its head, and the JSON text of its body."""

    head: UpstreamRequest
    content: bytes


class RequestRemedies(Struct, frozen=True):
    """How one request to a model is written: in which dialect, with which remedies.

    A value: a remedy that is found gives another one.

    Attributes:
        all: the remedies of the upstream.
        facts: what is known of the model.
        api: the API in use, `codec` writes for it; a remedy may switch to another one.
        made: the remedies in use, of which `new` were found for this request.
        before: the APIs for which it was written before, each with its remedies.
        left: how many more may be found.
    """

    all: Remedies
    facts: ModelFacts
    api: Api
    codec: Codec
    made: tuple[Remedy, ...] = ()
    new: tuple[Remedy, ...] = ()
    before: tuple[tuple[Api, tuple[Remedy, ...]], ...] = ()
    left: int = _MOST

    def write(self, chat: ChatRequest) -> WrittenRequest:
        """Encode the request with all remedies; its body is in the bytes alone."""
        _, request = self._encode(chat)
        return WrittenRequest(replace(request, body={}), write_json(request.body))

    def find(
        self, error: UpstreamError, chat: ChatRequest, sent: UpstreamRequest
    ) -> "RequestRemedies | None":
        """Return how to write a request that was refused; None if nothing helps.

        `sent` is what was sent for `chat`.
        """
        if not isinstance(error, UpstreamRefused) or not self.left:
            return None
        if self.api.dialect.loads_window and self.all.sizes.follow(
            self.facts, sent.num_ctx, error
        ):
            return replace(self, left=self.left - 1)
        rewritten, request = self._encode(chat)
        refused = RefusedRequest(
            request.body,
            error,
            extra=tuple(self._extra_body),
            known=self.made,
            dialects=tuple(
                api.dialect.name
                for api in self.all.spec.apis
                if api.dialect.name not in self._tried
            ),
            chat=rewritten,
            tool_names=request.tool_names,
        )
        remedy = find_remedy(self.codec.remedies, refused)
        if remedy is None:
            return None
        _log.info(
            "%s: %.80s refuses a request; changed: %s",
            self.all.spec.name,
            self.facts.id,
            remedy.change,
        )
        found = replace(
            self,
            made=(*self.made, remedy),
            new=(*self.new, remedy),
            left=self.left - 1,
        )
        if not found.left:
            found.remember()  # as far as they go: the next request goes on from here
        return found.follow_switches()

    def remember(self) -> None:
        """Use these remedies in later requests from the start: the model has answered.

        Remedies that did not help are forgotten: a tool would be left out for nothing.
        """
        for api, made in self.before:
            self.all.remember(api.dialect, self.facts.id, made)
        self.all.remember(self.codec, self.facts.id, self.made)

    def learned_facts(self) -> ModelFacts:
        """Return what the remedies in use teach about the model; the last count."""
        steps = (
            *((api.dialect, made) for api, made in self.before),
            (self.codec, self.made),
        )
        layers = [
            (FactSource.REFUSAL, row.teaches(remedy))
            for codec, made in reversed(steps)
            for remedy in reversed(made)
            if (row := codec.remedies.get(remedy.change))
        ]
        return combine_facts(self.facts.id, layers).facts

    def follow_switches(self) -> "RequestRemedies":
        """Return how to write it in the dialect that the remedies lead to."""
        for remedy in self.made:
            row = self.codec.remedies.get(remedy.change)
            if row is None or not row.switches or remedy.what in self._tried:
                continue
            if api := self.all.spec.find_api(remedy.what):
                switched = replace(
                    self,
                    api=api,
                    codec=api.dialect,
                    made=self.all.known(api.dialect, self.facts.id),
                    before=(*self.before, (self.api, self.made)),
                )
                return switched.follow_switches()
        return self

    @property
    def _tried(self) -> set[str]:
        """The names of the dialects in which it was written."""
        apis = (*(api for api, _ in self.before), self.api)
        return {api.dialect.name for api in apis}

    @property
    def _extra_body(self) -> Json:
        """The user's fields, which are meant for the first dialect."""
        return self.all.spec.extra_body if self.api is self.all.spec.api else {}

    def _encode(self, chat: ChatRequest) -> tuple[ChatRequest, UpstreamRequest]:
        """Return the conversation as it is encoded, and the request."""
        spec, num_ctx = self.all.spec, 0
        if self.api.dialect.loads_window:
            num_ctx = self.all.sizes.choose(chat, self.facts)
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
        return write_request(self.codec, chat, target, self.made, self.new)
