"""Build the upstreams of the settings, and keep those whose own settings stay equal.

An upstream learns while it runs: the windows of its models, what they refuse, whether
it can be reached. So one whose settings did not change is kept, with its key, when the
settings are read again.

A long conversation is summarised by a model that the router finds, and the router finds
it among the upstreams that are built here. So the upstreams come first, and the router
is put into `router` afterwards; nothing is summarised before.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from byok.config import Settings, UpstreamSettings
from byok.keys import KeyLadder, KeyWanted
from byok.keys.lookup import AnyKey
from byok.prompts.prompt_set import PromptSet
from byok.purposes import Purpose
from byok.redact import Redactor
from byok.upstream.base import Destination, Upstream
from byok.upstream.fallback import Fallbacks
from byok.upstream.model_facts import KnownModels
from byok.upstream.profiles import Profiles
from byok.upstream.provider_data_store import ProviderDataStore
from byok.upstream.router import Router
from byok.upstream.summaries import Summariser
from byok.upstream.transport import Transports
from byok.wiring.key_sources import keys_wanted, make_key
from byok.wiring.upstreams import make_spec, make_upstream


@dataclass(frozen=True, slots=True)
class PooledUpstream:
    """An upstream with its key; `built_from` is all that both depend on.

    `known` is what it knows about its models; None for the demo.
    """

    upstream: Upstream
    key: AnyKey
    known: KnownModels | None
    built_from: tuple[object, ...]


class UpstreamPool:
    """Builds upstreams, again and again while the settings change."""

    router: Router  # that of the settings in force
    fallbacks: Fallbacks  # as well

    def __init__(
        self,
        transports: Transports,
        ladder: KeyLadder,
        redactor: Redactor,
        provider_data: ProviderDataStore,
        profiles: Profiles,
    ) -> None:
        self._transports = transports
        self._ladder = ladder
        self._redactor = redactor
        self._provider_data = provider_data
        self._profiles = profiles
        self._pooled: Mapping[str, PooledUpstream] = {}
        self._summariser_of = ("", "")  # the model, and the version of the prompts
        self._summariser = Summariser("", self._find)

    def build(
        self,
        settings: Settings,
        sections: Mapping[str, UpstreamSettings],
        prompts: PromptSet,
    ) -> Mapping[str, PooledUpstream]:
        """Return the upstreams of these sections, by name and in their order."""
        summary_model = settings.routing.models.for_purpose(Purpose.SUMMARY)
        wanted = (summary_model, prompts.version)
        if wanted != self._summariser_of:
            self._summariser_of = wanted
            self._summariser = Summariser(summary_model, self._find, prompts)
        self._pooled = {
            name: self._reuse_or_build(name, section, settings)
            for name, section in sections.items()
        }
        return self._pooled

    def make_key(self, *wanted: KeyWanted) -> AnyKey:
        """Return a key, or several, each looked up when it is needed first."""
        return make_key(self._ladder, self._redactor, *wanted)

    def _reuse_or_build(
        self, name: str, section: UpstreamSettings, settings: Settings
    ) -> PooledUpstream:
        built_from = (section, make_spec(name, section, settings), self._summariser)
        known = self._pooled.get(name)
        if known is not None and known.built_from == built_from:
            return known
        key = self.make_key(*keys_wanted(name, section))
        upstream, known_models = make_upstream(
            name,
            section,
            common=settings,
            transports=self._transports,
            key=key,
            summarise=self._summariser,
            provider_data=self._provider_data,
            profiles=self._profiles,
        )
        return PooledUpstream(upstream, key, known_models, built_from)

    async def _find(self, model: str) -> Destination:
        """Return who writes a summary, by the settings that are in force by then."""
        chosen = await self.router.choose_listed(model)
        return await self.fallbacks.prepare(chosen, Purpose.SUMMARY)
