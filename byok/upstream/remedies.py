"""Remedies in use: tried once a request after a refusal, remembered per model."""

import logging
from dataclasses import replace
from typing import TypeAlias

from byok.chat import ChatRequest, Origin
from byok.dialects.base import Codec, Target, UpstreamRequest
from byok.dialects.body_rows import presumed_remedies
from byok.dialects.model_facts import FactSource, ModelFacts, combine_facts
from byok.dialects.remedies import (
    RefusedRequest,
    Remedy,
    apply_remedies,
    find_remedy,
)
from byok.errors import UpstreamError, UpstreamRefused
from byok.events import Notice
from byok.upstream.context_sizes import ContextSizes
from byok.upstream.spec import Api, UpstreamSpec
from byok.wire.json_body import parse_json, write_json

_log = logging.getLogger(__name__)
# Of each model, by its codec.
KnownRemedies: TypeAlias = dict[tuple[object, str], list[Remedy]]
_MAX_MODELS = 1000
_MOST = 12  # new ones for one request; the next request begins with them


class Remedies:
    """The remedies that each model of an upstream is known to need."""

    def __init__(self, spec: UpstreamSpec) -> None:
        self._spec = spec
        self._known: KnownRemedies = {}
        self.sizes = ContextSizes(spec.num_ctx)

    def begin(self, facts: ModelFacts, fim: Codec | None = None) -> "RequestRemedies":
        """Start a request to a model, in a codec for FIM or in a dialect."""
        if len(self._known) > _MAX_MODELS:
            self._known.clear()
        return RequestRemedies(self._spec, self._known, facts, fim, self.sizes)

    def save(self) -> KnownRemedies:
        """Return what is known by now, for `restore`."""
        return {key: [*known] for key, known in self._known.items()}

    def restore(self, saved: KnownRemedies) -> None:
        """Forget what was learned since `save`."""
        self._known = saved


class RequestRemedies:
    """One request to a model, encoded with the remedies that it needs.

    `api` and `codec` are those in use; a remedy may switch to another dialect. `facts`
    are what is known of the model, `notices` are for the user.
    """

    def __init__(
        self,
        spec: UpstreamSpec,
        known: KnownRemedies,
        facts: ModelFacts,
        fim: Codec | None,
        sizes: ContextSizes,
    ) -> None:
        self._spec = spec
        self._sizes = sizes
        self._num_ctx = 0
        self._all_known = known
        self.facts = facts
        self._model = facts.id
        self._left = _MOST
        self._tried: list[str] = []  # the dialects in which it was written
        self._steps: list[tuple[list[Remedy], list[Remedy]]] = []  # known, made
        self._new: list[Remedy] = []
        self._taught: list[ModelFacts] = []
        self.notices: list[Notice] = []
        api = (not fim and spec.find_api(facts.dialect)) or spec.api
        self._use(api, fim or api.dialect)
        self._follow()

    def write(self, chat: ChatRequest) -> tuple[UpstreamRequest, bytes]:
        """Encode the request with all remedies; its body is in the bytes alone."""
        spec = self._spec
        if self.api.dialect.loads_window:
            self._num_ctx = self._sizes.choose(chat, self.facts)
        target = Target(
            self._model,
            spec.extra_body if self.api is spec.api else {},
            self.facts,
            Origin(self.api.dialect.name, spec.name, self._model),
            spec.cache,
            self._num_ctx,
        )
        request = self.codec.encode(chat, target)
        body, notices = apply_remedies(
            self.codec.remedies,
            request.body,
            (*presumed_remedies(self.facts), *self._made),
            new=self._new,
            agent=chat.agent,
        )
        self.notices = [Notice(text) for text in (*request.notices, *notices)]
        return replace(request, body={}, origin=target.origin), write_json(body)

    def find(self, error: UpstreamError, content: bytes) -> bool:
        """Find one more remedy after a refusal of `content`; False if there is none."""
        if not isinstance(error, UpstreamRefused) or not self._left:
            return False
        if self.api.dialect.loads_window and self._sizes.follow(
            self.facts, self._num_ctx, error
        ):
            self._left -= 1
            return True
        extra = tuple(self._spec.extra_body) if self.api is self._spec.api else ()
        others = tuple(
            api.dialect.name
            for api in self._spec.apis
            if api.dialect.name not in self._tried
        )
        refused = RefusedRequest(
            parse_json(content), error, extra, tuple(self._made), others
        )
        remedy = find_remedy(self.codec.remedies, refused)
        if remedy is None:
            return False
        self._left -= 1
        self._made.append(remedy)
        self._new.append(remedy)
        self._taught.append(self.codec.remedies[remedy.change].teaches(remedy))
        _log.info(
            "%s: %.80s refuses a request; changed: %s",
            self._spec.name,
            self._model,
            remedy.change,
        )
        if not self._left:
            self.remember()  # as far as they go: the next request goes on from here
        self._switch(remedy)
        return True

    def remember(self) -> None:
        """Use these remedies in later requests from the start: the model has answered.

        Remedies that did not help are forgotten: a tool would be left out for nothing.
        """
        for known, made in self._steps:
            known += [remedy for remedy in made if remedy not in known]

    def learned_facts(self) -> ModelFacts:
        """Return what the remedies that were found teach about the model."""
        if not self._taught:
            return ModelFacts(self._model)
        layers = ((FactSource.REFUSAL, facts) for facts in reversed(self._taught))
        return combine_facts(self._model, layers).facts

    def _use(self, api: Api, codec: Codec) -> None:
        key = (codec, self._model)
        if key not in self._all_known:
            self._all_known[key] = [*codec.initial_remedies(self._model)]
        known = self._all_known[key]
        self.api, self.codec, self._made = api, codec, [*known]
        self._steps.append((known, self._made))
        self._tried.append(api.dialect.name)

    def _follow(self) -> None:
        """Switch to the dialect that the model is known to need."""
        while any(self._switch(remedy) for remedy in self._made):
            pass

    def _switch(self, remedy: Remedy) -> bool:
        """Switch to the dialect that a remedy names; False if it names none."""
        row = self.codec.remedies.get(remedy.change)
        if row is None or not row.switches or remedy.what in self._tried:
            return False
        if (api := self._spec.find_api(remedy.what)) is None:
            return False
        self._use(api, api.dialect)
        return True
