"""Build the upstreams of the settings, or find one; reuse those that stay equal."""

import asyncio
import logging
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from byok.core.chat import Sampling
from byok.core.errors import ConfigError, KeyMissing
from byok.core.prompts.prompt_set import FitMemory, ModelFit, PromptSet, find_fit
from byok.core.redact import Redactor
from byok.core.routing import Purpose
from byok.core.urls import is_loopback
from byok.dialects.base import Codec
from byok.dialects.default_models import choose_chat_model
from byok.dialects.fim_codecs import codecs_of, next_edit_codecs, ollama_codecs
from byok.dialects.fim_templates import OLLAMA_MODES, FimMode, fim_profile_of
from byok.dialects.model_facts import ModelFacts
from byok.dialects.presets import DEMO, OLLAMA, PRESETS, find_preset, vendor_of
from byok.dialects.refusals import window_cure
from byok.protocols.augment.reply_job import Defaults
from byok.search.retrieval.masking import is_generated
from byok.settings import Settings, UpstreamSettings, upstream_named
from byok.settings.keys import KeyLadder, KeyLookup
from byok.settings.keys.ladder import AnyKey
from byok.settings.loading import SENT
from byok.settings.values import AUTO
from byok.upstream.base import Destination, Upstream
from byok.upstream.catalog import Catalog, find_answering
from byok.upstream.client import HttpUpstream
from byok.upstream.context_window import ShorterConversation, WindowSource
from byok.upstream.demo import MODEL as DEMO_MODEL
from byok.upstream.demo import DemoUpstream
from byok.upstream.fallback import Fallbacks
from byok.upstream.model_facts import KnownModels, Profiles
from byok.upstream.official import OfficialService
from byok.upstream.own_questions import Summarise, Summariser
from byok.upstream.pictures import DescribedPictures, PictureDescriber
from byok.upstream.prompt_changes import PromptChanges
from byok.upstream.provider_data_store import ProviderDataStore
from byok.upstream.router import Router
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.timeouts import LOCAL, REASONING, REMOTE
from byok.upstream.transport import Route, Transports
from byok.wiring.apis import apis_of
from byok.wiring.key_sources import key_lookup, key_lookups, make_key

_log = logging.getLogger(__name__)
_LOCAL_PAUSE, _REMOTE_PAUSE = 3.0, 30.0  # of the circuit breaker, in seconds
_NO_SECTION = UpstreamSettings()


def models_of(section: UpstreamSettings) -> tuple[tuple[str, ...], str]:
    """Return the models listed in the settings, and the upstream's default model."""
    if section.type == DEMO:
        return (DEMO_MODEL,), DEMO_MODEL
    return tuple(section.models), section.model


def make_spec(name: str, settings: UpstreamSettings, common: Settings) -> UpstreamSpec:
    """Combine a section with the settings that are common to all upstreams."""
    chat, network = common.chat, common.network
    apis = apis_of(settings)
    local = is_loopback(apis[0].base_url)
    proxy = "" if local else settings.proxy or network.proxy
    timeouts, reasoning = (LOCAL, LOCAL) if local else (REMOTE, REASONING)
    if settings.timeout:
        timeouts = reasoning = timeouts.with_idle(settings.timeout)
    return UpstreamSpec(
        name=name,
        apis=apis,
        query=settings.query,
        timeouts=timeouts,
        reasoning_timeouts=reasoning,
        patience=settings.patience,
        # A local server may be started at any moment, so its pause is short.
        breaker_pause=_LOCAL_PAUSE if local else _REMOTE_PAUSE,
        headers={**chat.headers, **settings.headers},
        extra_body={**chat.extra_body, **settings.extra_body},
        cache=settings.cache,
        long_cache=settings.long_cache,
        num_ctx=settings.num_ctx,
        route=Route(proxy, settings.ca_file or network.ca_file),
        vendor=find_preset(settings.type, apis[0].base_url),
        facts=_facts_of(settings),
        fim=_fim_codecs(settings.type, apis[0], common.completion.way),
        next_edit=_next_edit_codecs(settings.type, apis[0]),
    )


def _facts_of(settings: UpstreamSettings) -> dict[str, ModelFacts]:
    """Return the user's facts about models, by model; "" is for all models."""
    facts = {model: stated.as_facts(model) for model, stated in settings.facts.items()}
    if settings.context_window:
        facts[""] = ModelFacts("", window=settings.context_window)
    return facts


def _fim_codecs(kind: str, api: Api, way: str) -> dict[FimMode, Codec | None]:
    """Return the codecs for the modes of FIM to try; None stands for a chat."""
    if api.dialect.name == OLLAMA:
        codecs, modes = ollama_codecs(), OLLAMA_MODES
    elif "completions" in api.dialect.serves:
        profile = fim_profile_of(vendor_of(kind, api.base_url))
        codecs, modes = codecs_of(profile), profile.modes
    else:
        return {FimMode.CHAT: None}
    modes = modes if way == AUTO else (FimMode(way),)
    return {mode: codecs.get(mode) for mode in modes}


class Shared(Struct, frozen=True):
    """The parts that all upstreams and servers share, across changes of settings."""

    transports: Transports
    provider_data: ProviderDataStore
    profiles: Profiles
    ladder: KeyLadder
    redactor: Redactor
    prompt_changes: PromptChanges = field(default_factory=PromptChanges)

    def make_key(self, *lookups: KeyLookup) -> AnyKey:
        """Return one key, or a pool of several; each is looked up at its first use."""
        return make_key(self.ladder, self.redactor, *lookups)


class Helpers(NamedTuple):
    """Helpers that ask other models for summaries and descriptions of pictures."""

    summarise: Summarise
    describer: PictureDescriber | None = None


def _next_edit_codecs(kind: str, api: Api) -> Mapping[FimMode, Codec]:
    """Return the codecs for models that predict next edits."""
    if api.dialect.name == OLLAMA:
        return next_edit_codecs(OLLAMA)
    vendor = vendor_of(kind, api.base_url)
    serves = vendor != OLLAMA and "completions" in api.dialect.serves
    return next_edit_codecs(vendor) if serves else {}


class PooledUpstream(Struct, frozen=True):
    """An upstream with its key; both depend on nothing but `built_from`.

    `known` has the known facts about its models; None for the demo.
    """

    upstream: Upstream
    key: AnyKey
    known: KnownModels | None
    built_from: tuple[object, ...]


def make_upstream(
    spec: UpstreamSpec, settings: UpstreamSettings, shared: Shared, helpers: Helpers
) -> PooledUpstream:
    """Build the upstream of one section, from which `spec` was made."""
    name, built_from = spec.name, (settings, spec, helpers)
    key = shared.make_key(*key_lookups(name, settings))
    if settings.type == DEMO:
        return PooledUpstream(DemoUpstream(name), key, None, built_from)
    http = HttpUpstream(spec, shared.transports, key, profiles=shared.profiles)
    if settings.num_ctx and not spec.api.dialect.loads_window:
        _log.warning("%s: num_ctx has no effect, its server cannot be told", name)
    dialect, vendor = spec.api.dialect, vendor_of(settings.type, spec.api.base_url)
    window = WindowSource(
        http.window,
        dialect.sends_thoughts,
        may_cut=not dialect.loads_window,
        cure=window_cure(vendor, dialect.name),
    )
    http.recoveries += (ShorterConversation(http, helpers.summarise, window),)
    if helpers.describer is not None:
        http.recoveries += (DescribedPictures(helpers.describer, http.sees_pictures),)
    http.recoveries += (shared.provider_data, shared.prompt_changes)
    return PooledUpstream(http, key, http.known, built_from)


def make_official(settings: Settings, shared: Shared, key: AnyKey) -> OfficialService:
    """Build the client of the official service; without an address it sends nothing."""
    url, network = settings.routing.official.base_url, settings.network
    proxy = "" if is_loopback(url) else network.proxy
    route = Route(proxy, network.ca_file)
    return OfficialService(url, shared.transports, key, shared.redactor, route=route)


class UpstreamPool:
    """Builds the upstreams for each version of the settings, and reuses equal ones.

    An upstream learns while it runs: the windows of its models, what they refuse,
    whether it can be reached. So it is reused, with its key, if its own settings did
    not change.

    A long conversation is summarised by a model that the router finds among the
    upstreams that are built here. So the upstreams are built first, and `router` and
    `fallbacks` are set afterwards; no summary is needed before that.
    """

    router: Router  # for the settings in force
    fallbacks: Fallbacks  # for the settings in force

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._pooled: Mapping[str, PooledUpstream] = {}
        self._helpers_key = ("", "", "")  # the models, and the version of the prompts
        self._helpers = Helpers(Summariser("", self._find))

    def build(
        self,
        settings: Settings,
        sections: Mapping[str, UpstreamSettings],
        prompts: PromptSet,
    ) -> Mapping[str, PooledUpstream]:
        """Return the upstreams of these sections, by name and in their order."""
        models = settings.routing.models
        summary_model = models.for_purpose(Purpose.SUMMARY)
        helpers_key = (summary_model, models.vision or models.image, prompts.version)
        if helpers_key != self._helpers_key:
            self._helpers_key = helpers_key
            self._helpers = self._make_helpers(*helpers_key[:2], prompts)
        self._pooled = {
            name: self._reuse_or_build(name, section, settings)
            for name, section in sections.items()
        }
        return self._pooled

    def _make_helpers(self, summary: str, vision: str, prompts: PromptSet) -> Helpers:
        summarise = Summariser(summary, self._find, prompts)
        if not vision:
            return Helpers(summarise)
        store = self._shared.provider_data

        async def find() -> Destination:
            return await self.router.choose_listed(vision)  # no fallback

        return Helpers(summarise, PictureDescriber(find, store, prompts))

    def _reuse_or_build(
        self, name: str, section: UpstreamSettings, settings: Settings
    ) -> PooledUpstream:
        spec, pooled = make_spec(name, section, settings), self._pooled.get(name)
        if pooled is not None and pooled.built_from == (section, spec, self._helpers):
            return pooled
        return make_upstream(spec, section, self._shared, self._helpers)

    async def _find(self, model: str) -> Destination:
        """Return the model that writes a summary, by the settings in force."""
        destination = await self.router.choose_listed(model)
        return await self.fallbacks.prepare(destination, Purpose.SUMMARY)


class UpstreamSelection(Struct, frozen=True):
    """The upstreams in order; the first is the default, for the `reason`.

    With `by_option` the user chose it by an option; with `is_last_resort` it is the
    demo, because no other was found.
    """

    upstreams: Mapping[str, UpstreamSettings]
    reason: str
    by_option: bool = False
    is_last_resort: bool = False


def values_to_hide(
    settings: Settings, upstreams: Iterable[UpstreamSettings]
) -> Iterable[str]:
    """Yield the values that settings add to requests and that may be secret.

    Texts in bodies are yielded only if they look generated and name no model: words
    such as "priority" must stay readable.
    """
    sections = [*upstreams]
    names = {name for section in sections for name in (section.model, *section.models)}
    for section in (*dict(settings).values(), settings.search.remote, *sections):
        headers, query, body = (getattr(section, name, {}) for name in SENT)
        yield from (*headers.values(), *query.values())
        for text in _texts_in(body):
            if text not in names and is_generated(text):
                yield text


def _texts_in(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _texts_in(inner)
        case list():
            for inner in value:
                yield from _texts_in(inner)
        case _:
            return  # numbers hide nothing


def default_id(selection: UpstreamSelection, settings: Settings, model: str) -> str:
    """Return the id of the default model, "" for the default of the first upstream.

    `model` is that of `--model`: a whole id, an alias, or the name of a model of the
    first upstream. With `--upstream`, a default model of another upstream is ignored.
    """
    first, aliases = next(iter(selection.upstreams)), settings.routing.aliases
    if not model:
        default = settings.routing.default
        resolved = settings.routing.meant_by(default)
        owner = resolved.removeprefix("byok:").partition(":")[0]
        is_elsewhere = owner != first and owner in selection.upstreams
        return "" if is_elsewhere and selection.by_option else default
    if model.removeprefix("byok:") in aliases:
        return model
    return model if model.startswith("byok:") else f"byok:{first}:{model}"


async def select_upstreams(
    settings: Settings,
    option: str,
    transports: Transports,
    ladder: KeyLadder,
    previous: UpstreamSelection | None = None,
) -> UpstreamSelection:
    """Decide which upstreams to use, and which comes first.

    The value of `--upstream`, `option`, comes before the upstreams of the settings. If
    the user names none, the `previous` selection stays, so that emptied settings send
    no code elsewhere. At the start it is the first local server that answers, else a
    hosted preset whose key is found, else the demo.
    """
    if option:
        name, section = upstream_named(option, settings)
        others = {n: u for n, u in settings.upstreams.items() if n != name}
        reason = "chosen by --upstream"
        return UpstreamSelection({name: section, **others}, reason, by_option=True)
    if settings.upstreams:
        return UpstreamSelection(settings.upstreams, "first of the settings")
    if previous is not None and not previous.is_last_resort:
        reason = "as before: the settings name none; choose with --upstream"
        return replace(previous, reason=reason)
    return await _find_any(transports, ladder)


async def _find_any(transports: Transports, ladder: KeyLadder) -> UpstreamSelection:
    """Select one preset: a local server, a vendor with a key, or the demo."""
    if server := await find_local(transports):
        name, reason = server[0], f"it answers at {server[1]}"
    elif first_key := await asyncio.to_thread(_first_key, ladder):
        name, reason = first_key[0], f"its key is in {first_key[1]}"
    else:
        reason = "no local server answers and no key was found; choose with --upstream"
        demo = {DEMO: UpstreamSettings(type=DEMO)}
        return UpstreamSelection(demo, reason, is_last_resort=True)
    return UpstreamSelection({name: UpstreamSettings(type=name)}, reason)


async def find_local(transports: Transports) -> tuple[str, str] | None:
    """Return the first local preset whose server answers, and its base URL."""
    local = {
        n: apis_of(UpstreamSettings(type=n))[0] for n, p in PRESETS.items() if p.local
    }
    answering = await find_answering(transports, local)
    return (answering[0], local[answering[0]].base_url) if answering else None


def _first_key(ladder: KeyLadder) -> tuple[str, str] | None:
    """Return the first hosted preset that has a key, and the key's source. Blocks."""
    hosted = [n for n, p in PRESETS.items() if not p.local and p.base_url]
    for name in (n for n in hosted if not PRESETS[n].only_by_name):
        lookup = key_lookup(name, UpstreamSettings(type=name))
        try:
            return name, ladder.find(lookup).source
        except KeyMissing:
            continue
        except ConfigError as error:
            _log.warning("leaving out %s: %s", name, error)
    return None


@asynccontextmanager
async def open_probed(
    name: str,
    section: UpstreamSettings,
    common: Settings,
    ladder: KeyLadder,
    redactor: Redactor,
) -> AsyncIterator[HttpUpstream]:
    """Open the upstream of a section for a probe, with connections of its own.

    It uses no results of earlier probes, which would bias this one, and does not
    shorten conversations.

    Raises:
        ConfigError: it is the demo.
    """
    if section.type == DEMO:
        raise ConfigError("The demo is no model that could be probed.")
    transports = Transports()
    key = make_key(ladder, redactor, *key_lookups(name, section))
    try:
        yield HttpUpstream(make_spec(name, section, common), transports, key)
    finally:
        await transports.close()


async def choose_model(
    upstream: HttpUpstream,
    section: UpstreamSettings,
    list_models: Callable[[], Awaitable[Sequence[str]]] | None = None,
) -> str:
    """Return the default model of an upstream, from its list if necessary.

    Raises:
        ConfigError: the upstream lists no models.
    """
    named = (section.model, *section.models)
    if configured := next(filter(None, named), ""):
        return configured
    listed = await (list_models or upstream.models)()
    facts = [upstream.known.facts(model) for model in listed]
    if not (chosen := choose_chat_model(upstream.spec.vendor, facts)):
        raise ConfigError(
            f"{upstream.name} lists no models.",
            hint=f"Name one: byok probe {upstream.name}/MODEL",
        )
    return chosen


class RequestDefaults(Struct, frozen=True):
    """Finds the defaults of requests; `sections` are the upstreams by their names."""

    settings: Settings
    sections: Mapping[str, UpstreamSettings]
    catalog: Catalog
    prompts: PromptSet
    fits: FitMemory

    def __call__(
        self, endpoint: str, destination: Destination, conversation: str = ""
    ) -> Defaults:
        """Return the defaults of an endpoint for the model of a destination.

        In a `conversation`, the prompts suit the model as it was known in the first
        turn.
        """
        chat = self.settings.chat
        upstream = destination.upstream.name
        section = self.sections.get(upstream) or _NO_SECTION
        sampling = Sampling(
            chat.temperature if section.temperature is None else section.temperature,
            chat.top_p if section.top_p is None else section.top_p,
            chat.max_tokens if section.max_tokens is None else section.max_tokens,
            section.effort or chat.effort,
        )
        find = partial(self._find_fit, upstream, destination.model)
        fit = self.fits.recall(conversation, destination.model_id, find)
        return Defaults(
            section.system_prompt or chat.system_prompt,
            self.settings.prompts.get(endpoint.lstrip("/"), ""),
            sampling,
            self.prompts,
            fit,
            compact_tools=chat.compact_tools and fit.is_small,
        )

    def _find_fit(self, upstream: str, model: str) -> ModelFit:
        facts = self.catalog.facts_of(upstream, model).facts
        return find_fit(
            model,
            family=facts.family,
            thinks=facts.thinking is True,
            window=facts.loaded_window or facts.window,
        )
