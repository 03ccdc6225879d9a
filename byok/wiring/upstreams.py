"""Build the upstreams of the settings, or find one; those that stay equal are kept."""

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
from byok.settings.keys import KeyLadder, KeyWanted
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
from byok.wiring.key_sources import key_wanted, keys_wanted, make_key

_log = logging.getLogger(__name__)
_LOCAL_PAUSE, _REMOTE_PAUSE = 3.0, 30.0  # of the circuit breaker, in seconds


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
    """Return what the user says about models: about one, and under "" about all."""
    facts = {model: own.as_facts(model) for model, own in settings.facts.items()}
    if settings.context_window:
        facts[""] = ModelFacts("", window=settings.context_window)
    return facts


def _fim_codecs(kind: str, api: Api, way: str) -> dict[FimMode, Codec | None]:
    """Return the codecs for FIM that are tried, beside those of a chat."""
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
    """What all upstreams and servers share, also those of other settings."""

    transports: Transports
    provider_data: ProviderDataStore
    profiles: Profiles
    ladder: KeyLadder
    redactor: Redactor
    prompt_changes: PromptChanges = field(default_factory=PromptChanges)

    def make_key(self, *wanted: KeyWanted) -> AnyKey:
        """Return a key, or several, each looked up when it is needed first."""
        return make_key(self.ladder, self.redactor, *wanted)


class Helpers(NamedTuple):
    """What asks other models for one that answers: for summaries, about pictures."""

    summarise: Summarise
    describer: PictureDescriber | None = None


def _next_edit_codecs(kind: str, api: Api) -> Mapping[FimMode, Codec]:
    """Return the codecs for models that are made for next edits."""
    if api.dialect.name == OLLAMA:
        return next_edit_codecs(OLLAMA)
    vendor = vendor_of(kind, api.base_url)
    serves = vendor != OLLAMA and "completions" in api.dialect.serves
    return next_edit_codecs(vendor) if serves else {}


class PooledUpstream(Struct, frozen=True):
    """An upstream with its key; `built_from` is all that both depend on.

    `known` is what it knows about its models; None for the demo.
    """

    upstream: Upstream
    key: AnyKey
    known: KnownModels | None
    built_from: tuple[object, ...]


def make_upstream(
    spec: UpstreamSpec, settings: UpstreamSettings, shared: Shared, helpers: Helpers
) -> PooledUpstream:
    """Build the upstream of one section, which `spec` was made of."""
    name, built_from = spec.name, (settings, spec, helpers)
    key = shared.make_key(*keys_wanted(name, settings))
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
    """Build the official service; without an address nothing is sent to it."""
    url, network = settings.routing.official.base_url, settings.network
    proxy = "" if is_loopback(url) else network.proxy
    route = Route(proxy, network.ca_file)
    return OfficialService(url, shared.transports, key, shared.redactor, route=route)


# Build the upstreams of the settings, and keep those whose own settings stay equal.
#
# An upstream learns while it runs: the windows of its models, what they refuse, whether
# it can be reached. So one whose settings did not change is kept, with its key, when
# the settings are read again.
#
# A long conversation is summarised by a model that the router finds, and the router
# finds it among the upstreams that are built here. So the upstreams come first, and the
# router is put into `router` afterwards; nothing is summarised before.


class UpstreamPool:
    """Builds upstreams, again and again while the settings change."""

    router: Router  # that of the settings in force
    fallbacks: Fallbacks  # as well

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._pooled: Mapping[str, PooledUpstream] = {}
        self._helpers_of = ("", "", "")  # the models, and the version of the prompts
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
        wanted = (summary_model, models.vision or models.image, prompts.version)
        if wanted != self._helpers_of:
            self._helpers_of = wanted
            self._helpers = self._make_helpers(*wanted[:2], prompts)
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
        find = partial(self._find_alone, vision)
        return Helpers(summarise, PictureDescriber(find, store, prompts))

    def _reuse_or_build(
        self, name: str, section: UpstreamSettings, settings: Settings
    ) -> PooledUpstream:
        spec, known = make_spec(name, section, settings), self._pooled.get(name)
        if known is not None and known.built_from == (section, spec, self._helpers):
            return known
        return make_upstream(spec, section, self._shared, self._helpers)

    async def _find(self, model: str) -> Destination:
        """Return who writes a summary, by the settings that are in force by then."""
        chosen = await self.router.choose_listed(model)
        return await self.fallbacks.prepare(chosen, Purpose.SUMMARY)

    async def _find_alone(self, model: str) -> Destination:
        """Return who describes pictures: nobody but the model named for that."""
        return await self.router.choose_listed(model)


# Select the upstreams: those of the settings, a local server, or one with a key.


class UpstreamSelection(Struct, frozen=True):
    """The upstreams in order, of which the first is the default, and the reason.

    The user chose the first `by_option`, or it `is_last_resort`: nothing was found.
    """

    upstreams: Mapping[str, UpstreamSettings]
    reason: str
    by_option: bool = False
    is_last_resort: bool = False


def values_to_hide(
    settings: Settings, upstreams: Iterable[UpstreamSettings]
) -> Iterable[str]:
    """Give what may be secret of what settings add to requests.

    Of the additions that is what looks generated and names no model: words such as
    "priority" must stay readable.
    """
    asked = [*upstreams]
    names = {name for one in asked for name in (one.model, *one.models)}
    for section in (*dict(settings).values(), settings.search.remote, *asked):
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
    """Return the id of the default model, "" where the first upstream decides.

    `model` is that of `--model`: a whole id, an alias, or a name for the first
    upstream. Who names an upstream by `--upstream` wants no model of another one.
    """
    first, aliases = next(iter(selection.upstreams)), settings.routing.aliases
    if not model:
        default = settings.routing.default
        meant = settings.routing.meant_by(default)
        owner = meant.removeprefix("byok:").partition(":")[0]
        is_elsewhere = owner != first and owner in selection.upstreams
        return "" if is_elsewhere and selection.by_option else default
    if model.removeprefix("byok:") in aliases:
        return model
    return model if model.startswith("byok:") else f"byok:{first}:{model}"


async def select_upstreams(
    settings: Settings,
    wanted: str,
    transports: Transports,
    ladder: KeyLadder,
    before: UpstreamSelection | None = None,
) -> UpstreamSelection:
    """Decide which upstreams there are, and which comes first.

    The one of `--upstream`, `wanted`, comes before those of the settings. If the user
    names none, the selection of `before` stays, so that settings that were emptied
    send no code elsewhere. At the start it is the first local server that answers, else
    a hosted preset whose key is found, else the demo.
    """
    if wanted:
        name, chosen = upstream_named(wanted, settings)
        others = {n: u for n, u in settings.upstreams.items() if n != name}
        reason = "chosen by --upstream"
        return UpstreamSelection({name: chosen, **others}, reason, by_option=True)
    if settings.upstreams:
        return UpstreamSelection(settings.upstreams, "first of the settings")
    if before is not None and not before.is_last_resort:
        reason = "as before: the settings name none; choose with --upstream"
        return replace(before, reason=reason)
    return await _find_any(transports, ladder)


async def _find_any(transports: Transports, ladder: KeyLadder) -> UpstreamSelection:
    """Select one preset: a local server, a vendor with a key, or the demo."""
    if server := await find_local(transports):
        name, reason = server[0], f"it answers at {server[1]}"
    elif hit := await asyncio.to_thread(_first_key, ladder):
        name, reason = hit[0], f"its key is in {hit[1]}"
    else:
        reason = "no local server answers and no key was found; choose with --upstream"
        demo = {DEMO: UpstreamSettings(type=DEMO)}
        return UpstreamSelection(demo, reason, is_last_resort=True)
    return UpstreamSelection({name: UpstreamSettings(type=name)}, reason)


async def find_local(transports: Transports) -> tuple[str, str] | None:
    """Return the first local preset whose server answers, and where it does."""
    local = {
        n: apis_of(UpstreamSettings(type=n))[0] for n, p in PRESETS.items() if p.local
    }
    found = await find_answering(transports, local)
    return (found[0], local[found[0]].base_url) if found else None


def _first_key(ladder: KeyLadder) -> tuple[str, str] | None:
    """Return the first hosted preset that has a key, and the key's source. Blocks."""
    hosted = [n for n, p in PRESETS.items() if not p.local and p.base_url]
    for name in (n for n in hosted if not PRESETS[n].only_by_name):
        wanted = key_wanted(name, UpstreamSettings(type=name))
        try:
            return name, ladder.find(wanted).source
        except KeyMissing:
            continue
        except ConfigError as error:
            _log.warning("leaving out %s: %s", name, error)
    return None


# An upstream for the probe: its own API and keys, and nothing around it.


@asynccontextmanager
async def open_probed(
    name: str,
    section: UpstreamSettings,
    common: Settings,
    ladder: KeyLadder,
    redactor: Redactor,
) -> AsyncIterator[HttpUpstream]:
    """Open the upstream of a section.

    Profiles of an earlier probe do not count: it would find what it believes. Nor does
    anything that keeps a conversation within a window.

    Raises:
        ConfigError: it is the demo.
    """
    if section.type == DEMO:
        raise ConfigError("The demo is no model that could be probed.")
    transports = Transports()
    key = make_key(ladder, redactor, *keys_wanted(name, section))
    try:
        yield HttpUpstream(make_spec(name, section, common), transports, key)
    finally:
        await transports.close()


async def choose_model(
    upstream: HttpUpstream,
    section: UpstreamSettings,
    list_models: Callable[[], Awaitable[Sequence[str]]] | None = None,
) -> str:
    """Return the default model of an upstream, from its list if need be.

    Raises:
        ConfigError: it lists none.
    """
    named = (section.model, *section.models)
    if chosen := next(filter(None, named), ""):
        return chosen
    listed = await (list_models or upstream.models)()
    facts = [upstream.known.facts(model) for model in listed]
    if not (found := choose_chat_model(upstream.spec.vendor, facts)):
        raise ConfigError(
            f"{upstream.name} lists no models.",
            hint=f"Name one: byok probe {upstream.name}/MODEL",
        )
    return found


# What the settings say of every request to a model of an endpoint.


_NO_SECTION = UpstreamSettings()


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
        """Return the defaults of an endpoint for the model that is asked.

        In a `conversation` the prompts stay those that suited the model in its first
        turn.
        """
        chat = self.settings.chat
        upstream = destination.upstream.name
        own = self.sections.get(upstream) or _NO_SECTION
        sampling = Sampling(
            chat.temperature if own.temperature is None else own.temperature,
            chat.top_p if own.top_p is None else own.top_p,
            chat.max_tokens if own.max_tokens is None else own.max_tokens,
            own.effort or chat.effort,
        )
        find = partial(self._find_fit, upstream, destination.model)
        fit = self.fits.recall(conversation, destination.model_id, find)
        return Defaults(
            own.system_prompt or chat.system_prompt,
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
