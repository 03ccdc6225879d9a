"""Checks of upstreams: each is asked in the way of the daemon, once for each fact."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from byok.cli.checks.base import (
    CannotCheck,
    CheckContext,
    CheckResult,
    doubtful,
    good,
    once,
    skip,
    wrong,
)
from byok.core.chat import Json
from byok.core.errors import (
    ByokError,
    ConfigError,
    KeyMissing,
    UpstreamError,
    UpstreamRefused,
    UpstreamUnreachable,
)
from byok.core.platform.installation import quote
from byok.core.routing import Service, split_id
from byok.core.suggest import did_you_mean
from byok.core.urls import is_loopback
from byok.dialects.model_facts import FactSource
from byok.dialects.presets import DEMO, OLLAMA, SUGGESTED_MODEL
from byok.dialects.refusals import window_cure
from byok.settings import Settings, UpstreamSettings, chosen_models, upstream_named
from byok.settings.keys import KeyLookup
from byok.settings.keys.ladder import KeyPool, UpstreamKey
from byok.upstream.catalog import is_listed
from byok.upstream.client import HttpUpstream
from byok.upstream.model_facts import Profiles
from byok.upstream.model_table import known_table
from byok.upstream.probe.asking import ProbeAnswer, Prober, ProbeState
from byok.upstream.probe.cases import count_to_thirty, try_tool
from byok.upstream.probe.report import ProbeOutcome
from byok.upstream.router import PLACEHOLDER
from byok.upstream.transport import Transports
from byok.wiring.apis import base_url_of
from byok.wiring.key_sources import key_lookups, make_ladder, web_key_lookup
from byok.wiring.upstreams import (
    choose_model,
    find_local,
    make_spec,
    values_to_hide,
)

_NAME_ONE = "byok serve --upstream NAME, or add [upstreams.NAME] to the settings"
_CREDENTIAL = "systemd credential"
_DEFAULT = "default"
_MAX_COMPARED = 500
# Windows in tokens: the instructions and tools of an agent alone take about 12,000.
_TOO_SMALL, _SMALL = 16_384, 32_768
QUESTION_SECONDS = 90.0  # a local server may have to load its model first
_NOT_ASKED = skip("no model is asked unless you want it", "byok doctor --ask-models")


@once
async def upstreams_of(context: CheckContext) -> Mapping[str, UpstreamSettings]:
    """Return the upstreams to check, the default first.

    They are those of the settings and the one that the running daemon was started with;
    if there are none, a server that answers on this machine. The demo is left out. No
    other server is contacted.

    Raises:
        CannotCheck: the settings cannot be used.
    """
    settings = await context.settings()
    return await choose_upstreams(
        settings, await context.ask_if_running(Service.DAEMON)
    )


async def choose_upstreams(
    settings: Settings, status: Json | None
) -> Mapping[str, UpstreamSettings]:
    """Return the upstreams by name, the default first, without the demo.

    `status` is the status of the running daemon, None if none runs. If the settings
    name no upstream, servers on this machine are asked, as by `byok serve`.
    """
    sections: Mapping[str, UpstreamSettings] = settings.upstreams
    if status is not None:
        sections = {**_daemons_upstream(status, settings), **sections}
    elif not sections:
        sections = await _find_local_upstream()
    return {name: section for name, section in sections.items() if section.type != DEMO}


def _daemons_upstream(
    status: Json, settings: Settings
) -> Mapping[str, UpstreamSettings]:
    """Return the daemon's default upstream, which its command line may have named."""
    name, url = str(status.get("upstream", "")), str(status.get("base_url", ""))
    for name_or_url in (name, url):
        try:
            _, section = upstream_named(name_or_url, settings)
        except ConfigError:
            continue  # the name is unknown: try the address
        if base_url_of(section) == url:
            return {name: section}
    return {}


async def _find_local_upstream() -> Mapping[str, UpstreamSettings]:
    """Return the first local preset whose server answers."""
    transports = Transports()
    try:
        match = await find_local(transports)
    finally:
        await transports.close()
    return {match[0]: UpstreamSettings(type=match[0])} if match else {}


@once
async def open_upstream(context: CheckContext, name: str) -> HttpUpstream:
    """Return an upstream with its API, its keys and the known facts of its models."""
    settings, section = await context.settings(), (await upstreams_of(context))[name]
    for value in values_to_hide(settings, [section]):
        context.redactor.add(value)
    keys = [await _key(context, lookup) for lookup in key_lookups(name, section)]
    return HttpUpstream(
        make_spec(name, section, settings),
        await _open_transports(context),
        keys[0] if len(keys) == 1 else KeyPool(keys),
        profiles=Profiles(context.paths.profiles),
    )


@once
async def _open_transports(context: CheckContext) -> Transports:
    transports = Transports()
    context.on_close.append(transports.close)
    return transports


@once
async def _key(context: CheckContext, lookup: KeyLookup) -> UpstreamKey:
    """Return the key, shared by its check and the upstream, as a store may prompt."""
    ladder = make_ladder(context.paths, context.environ)
    local = is_loopback(lookup.base_url)
    return UpstreamKey(ladder, lookup, context.redactor, local=local)


@once
async def list_models(context: CheckContext, name: str) -> Sequence[str]:
    """Return the models that an upstream lists; it is asked once.

    Raises:
        ByokError: the request failed.
    """
    return await (await open_upstream(context, name)).models()


async def default_id(context: CheckContext) -> str:
    """Return the id of the model that clients get by default; "" if none is known."""
    if status := await context.ask_if_running(Service.DAEMON):
        return str(status.get("model", ""))
    routing = (await context.settings()).routing
    return routing.meant_by(routing.default)


async def model_of(context: CheckContext, name: str) -> str:
    """Return the model of an upstream to check: its default.

    Raises:
        CannotCheck: none is known.
    """
    model_id = await default_id(context)
    prefix, first = f"byok:{name}:", next(iter(await upstreams_of(context)))
    if model_id.startswith(prefix) and model_id != f"{prefix}{PLACEHOLDER}":
        return model_id.removeprefix(prefix)
    if model_id and name == first and not model_id.startswith("byok:"):
        return model_id
    section = (await upstreams_of(context))[name]
    upstream = await open_upstream(context, name)
    try:
        return await choose_model(
            upstream, section, partial(list_models, context, name)
        )
    except UpstreamError as error:
        raise CannotCheck("no model of it is known") from error
    except ConfigError as error:
        raise CannotCheck("it lists no models") from error


async def check_choice(context: CheckContext) -> CheckResult:
    """Check that there is an upstream at all."""
    names = [*await upstreams_of(context)]
    if names:
        return good(f"{len(names)} of the settings or the daemon: {', '.join(names)}")
    status = await context.ask_if_running(Service.DAEMON)
    if status is not None:
        return doubtful(
            f"the daemon uses {status.get('upstream')}: no model", _NAME_ONE
        )
    return doubtful(
        "none is named and no local server answers: byok would use a key that it "
        "finds, or its demo",
        _NAME_ONE,
    )


async def check_models(context: CheckContext, name: str) -> CheckResult:
    """Check that an upstream lists its models with its present key."""
    try:
        listed = await list_models(context, name)
    except UpstreamError as error:
        # A server without a list of models may still answer chats.
        status = error.upstream_status if isinstance(error, UpstreamRefused) else 0
        if status not in (404, 405, 501):
            return wrong(error.message, error.hint or f"byok keys test {name}")
        listed = ()
    section = (await upstreams_of(context))[name]
    in_settings = [*filter(None, (section.model, *section.models))]
    if not listed and in_settings:
        return good(f"it has none; {len(in_settings)} of the settings")
    if not listed:
        cure = f"Name one: model under [upstreams.{name}]"
        if (await open_upstream(context, name)).spec.vendor == OLLAMA:
            cure = f"To get a model for Ollama: ollama pull {SUGGESTED_MODEL}"
        return doubtful("it has none, and the settings name no model", cure)
    return good(f"{len(listed)} listed, such as {listed[0]}")


@once
async def lookups_by_title(context: CheckContext) -> Mapping[str, KeyLookup]:
    """Return the keys of all upstreams by title: the upstream, or UPSTREAM/KEY."""
    upstreams = await upstreams_of(context)
    keys = (key for n, section in upstreams.items() for key in key_lookups(n, section))
    return {key.title: key for key in keys}


async def check_key(context: CheckContext, title: str) -> CheckResult:
    """Check where a key comes from; name a key store that cannot be read."""
    lookup = (await lookups_by_title(context))[title]
    await open_upstream(context, lookup.name)  # the redactor learns its headers
    key = await _key(context, lookup)
    try:
        value = await key.get()
    except KeyMissing as error:
        row = await _row_of_daemon(context, lookup)
        if row.get("fingerprint"):
            return good(f"the running daemon has it, from {row.get('source')}")
        return wrong(error.message, error.hint)
    except ConfigError as error:
        return wrong(str(error), error.hint or f"byok keys set {lookup.command_name}")
    if not value and is_loopback(lookup.base_url):  # the daemon does the same
        return good("it is asked without one, or with a stored one if it refuses")
    if not value:
        return good("none is set: it is asked without one")
    if not await _daemon_has_it(context, lookup, key.source):
        return wrong(
            f"from {key.source} here, and the running daemon does not have it",
            "byok restart in this shell, or store it: byok keys set "
            f"{lookup.command_name}",
        )
    return good(f"from {key.source}")


async def _daemon_has_it(context: CheckContext, lookup: KeyLookup, source: str) -> bool:
    """Tell whether the daemon has the key, too: its environment may be another one.

    Sources other than the environment are the same for the daemon and this command;
    they are not read twice, as they may prompt.
    """
    if (
        source not in (*lookup.variables, _CREDENTIAL)
        or await context.running() is None
    ):
        return True
    row = await _row_of_daemon(context, lookup)
    return not row or bool(row.get("fingerprint"))


async def _row_of_daemon(context: CheckContext, lookup: KeyLookup) -> Json:
    """Return the daemon's row about a key; {} if it has none."""
    answer = await context.ask_if_running(Service.KEYS) or {}
    rows = [row for row in answer.get("keys", ()) if row["upstream"] == lookup.title]
    return rows[0] if rows else {}


async def check_web_tools(context: CheckContext) -> CheckResult:
    """Check that the daemon has the provider's key; report how the last call went."""
    features = (await context.ask(Service.DAEMON)).get("features") or {}
    rows = [row for row in features.get("web", ()) if row["kind"] == "line"]
    lookup = web_key_lookup(await context.settings())
    has_key = (await _row_of_daemon(context, lookup)).get("fingerprint")
    if lookup.base_url and not has_key:
        return wrong("the key is missing", f"byok keys set {lookup.title}")
    if failed := next((row["text"] for row in rows if row["warns"]), ""):
        return doubtful(failed, "see what it says, and [web] in the settings")
    return good(rows[0]["text"] if rows else "no model was offered them yet")


@once
async def models_by_use(context: CheckContext) -> Mapping[str, tuple[str, str]]:
    """Return upstream and model for each use, the default first.

    Uses of unknown upstreams or models are left out.
    """
    settings = await context.settings()
    upstreams = await upstreams_of(context)
    uses = [(row.use, row.model) for row in chosen_models(settings) if row.model]
    models: dict[str, tuple[str, str]] = {}
    for use, alias_or_id in [(_DEFAULT, await default_id(context)), *uses]:
        model_id = settings.routing.meant_by(alias_or_id)
        name, model = split_id(model_id) or (next(iter(upstreams), ""), model_id)
        if name in upstreams and model and model != _DEFAULT:
            models.setdefault(use, (name, model))
    if _DEFAULT not in models and upstreams:
        first = next(iter(upstreams))
        models = {_DEFAULT: (first, ""), **models}
    return models


async def check_model(context: CheckContext, use: str) -> CheckResult:
    """Check that the upstream has the model that the settings choose for a use."""
    name, model = (await models_by_use(context))[use]
    model = model or await model_of(context, name)
    section = (await upstreams_of(context))[name]
    try:
        listed = await list_models(context, name)
    except (CannotCheck, ByokError):
        return skip(f"{model}: the list of {name} is not known")
    if is_listed(model, listed):
        return good(f"{name} lists the model {model}")
    vendor = (await open_upstream(context, name)).spec.vendor
    if model in section.models or model in known_table().models_of(vendor):
        return good(f"{model} of {name}, which does not list it")
    if not listed:
        return skip(f"{model}: {name} lists no models")
    guess = did_you_mean(model, listed[:_MAX_COMPARED])
    key = "routing.default" if use == _DEFAULT else f"{use} under [routing]"
    if use == _DEFAULT and section.model == model:
        key = f"model under [upstreams.{name}]"
    cure = f"byok models shows all; correct {key} in the settings."
    if key == "routing.default" and not (await context.settings()).routing.default:
        cure = "byok models shows all; start byok with another --model."
    return wrong(f"{name} has no model {model}", f"{cure} {guess}".rstrip())


async def check_window(context: CheckContext, name: str) -> CheckResult:
    """Check that the window of an upstream's default model is known and large enough.

    The server of a local model may have loaded it with a small part of its window.
    """
    upstream = await open_upstream(context, name)
    model = await model_of(context, name)
    try:
        await list_models(context, name)
    except UpstreamUnreachable as error:
        raise CannotCheck("it does not answer") from error
    except ByokError:
        pass  # some lists have the window; other sources may know it as well
    window = await upstream.window(model)
    known, spec = upstream.known.sourced_facts(model), upstream.spec
    if not window:
        return doubtful(
            f"that of {model} is unknown, so long conversations are not shortened",
            f"context_window = TOKENS under [upstreams.{name}]",
        )
    dialect = spec.api.dialect
    finding = (
        f"{window:,} tokens of {model}, by the {known.sources.get('window', 'list')}"
    )
    is_loaded = known.sources.get("window") is FactSource.LOADED
    if dialect.loads_window and window < min(known.facts.window, _SMALL):
        finding = (
            f"num_ctx cuts that of {model} to {window:,} of {known.facts.window:,}"
        )
    elif is_loaded and not dialect.loads_window and window < _SMALL:
        finding = (
            f"its server cuts that of {model} to {window:,} tokens, without a word"
        )
    if window >= _SMALL:
        return good(finding)
    judge = wrong if window < _TOO_SMALL else doubtful
    return judge(
        f"{finding}: too small for an agent", window_cure(spec.vendor, dialect.name)
    )


async def asked_upstreams(context: CheckContext) -> Iterable[str] | CheckResult:
    """Return the upstreams to ask a question, or a result if asking is switched off."""
    return await upstreams_of(context) if context.asks_models else _NOT_ASKED


@once
async def _prober(context: CheckContext, name: str) -> Prober:
    upstream = await open_upstream(context, name)
    return Prober(upstream, await model_of(context, name), seconds=QUESTION_SECONDS)


@once
async def _answer(context: CheckContext, name: str) -> ProbeAnswer:
    """Return the answer to one question of a few words."""
    return await (await _prober(context, name)).ask_first(count_to_thirty())


async def check_chat(context: CheckContext, name: str) -> CheckResult:
    """Check that the default model of an upstream answers."""
    answer, model = await _answer(context, name), await model_of(context, name)
    cure = f"byok probe {quote(f'{name}/{model}')}"
    if answer.error:
        return wrong(f"{model}: {answer.error.message}", answer.error.hint or cure)
    if not answer.text.strip():
        return wrong(f"{model} answered without a word", cure)
    return good(f"{model} answered in {answer.seconds:.1f} s")


async def check_streaming(context: CheckContext, name: str) -> CheckResult:
    """Check that the answer was streamed in pieces."""
    answer = await _answer(context, name)
    if answer.error or not answer.text:
        raise CannotCheck("there was no answer")
    if answer.is_streamed:
        return good(f"{answer.reads} pieces, the first after {answer.first:.1f} s")
    if answer.is_streamed is None:
        raise CannotCheck(
            "this machine is too busy to tell whether the answer came in pieces"
        )
    return doubtful(
        "the answer came in one piece",
        "Does a proxy or gateway before the model collect answers? Let it stream",
    )


async def check_tool_call(context: CheckContext, name: str) -> CheckResult:
    """Check that the model calls a tool, as agents need it."""
    # Awaiting the first answer keeps two questions from being asked at once.
    if (await _answer(context, name)).error:
        raise CannotCheck("there was no answer")
    prober = await _prober(context, name)
    finding = await try_tool(prober, ProbeState())
    if finding.outcome is ProbeOutcome.YES:
        return good(f"{prober.model} calls a tool, {finding.detail}")
    judge = doubtful if finding.outcome is ProbeOutcome.NO else wrong
    return judge(
        f"{prober.model} calls no tool: {finding.detail}",
        "Agents need tools: choose another model (byok models)",
    )
