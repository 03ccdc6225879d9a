"""Checks of upstreams: each is asked as the daemon asks it, each thing once."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from byok.cli.checks.base import (
    CannotCheck,
    CheckResult,
    Surroundings,
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
from byok.settings.keys import KeyWanted
from byok.settings.keys.ladder import KeyPool, UpstreamKey
from byok.upstream.client import HttpUpstream
from byok.upstream.model_facts import Profiles
from byok.upstream.model_table import known_table
from byok.upstream.probe.asking import ProbeAnswer, Prober, ProbeState
from byok.upstream.probe.cases import count_to_thirty, try_tool
from byok.upstream.probe.report import ProbeOutcome
from byok.upstream.router import PLACEHOLDER
from byok.upstream.transport import Transports
from byok.wiring.apis import base_url_of
from byok.wiring.key_sources import keys_wanted, make_ladder, web_key_wanted
from byok.wiring.upstreams import (
    choose_model,
    find_local,
    make_spec,
    values_to_hide,
)

_NAME_ONE = "byok serve --upstream NAME, or add [upstreams.NAME] to the settings"
_CREDENTIAL = "systemd credential"
_DEFAULT = "default"
_MOST_COMPARED = 500
_LATEST = ":latest"  # Ollama's name for a model without a tag
# Tokens: the instructions and tools of an agent alone take about 12,000.
_TOO_SMALL, _SMALL = 16_384, 32_768
QUESTION_SECONDS = 90.0  # a local server may have to load its model first
_NOT_ASKED = skip("no model is asked unless you want it", "byok doctor --ask-models")


@once
async def upstreams_of(around: Surroundings) -> Mapping[str, UpstreamSettings]:
    """Return the upstreams to be looked at, the default first.

    Those are the ones of the settings, the one that the running daemon was started
    with, or where there are none a server that answers on this machine. The demo is
    none. Nobody else is asked anything.

    Raises:
        CannotCheck: the settings cannot be used.
    """
    settings = await around.settings()
    return await choose_upstreams(settings, await around.ask_if_running(Service.DAEMON))


async def choose_upstreams(
    settings: Settings, status: Json | None
) -> Mapping[str, UpstreamSettings]:
    """Return the upstreams by name, the default first, without the demo.

    `status` is what the running daemon tells of itself, None if none runs. If nobody
    names an upstream, servers on this machine are asked, as `byok serve` would.
    """
    found: Mapping[str, UpstreamSettings] = settings.upstreams
    if status is not None:
        found = {**_daemons_upstream(status, settings), **found}
    elif not found:
        found = await _on_this_machine()
    return {name: one for name, one in found.items() if one.type != DEMO}


def _daemons_upstream(
    status: Json, settings: Settings
) -> Mapping[str, UpstreamSettings]:
    """Return the daemon's default upstream, which its command line may have named."""
    name, url = str(status.get("upstream", "")), str(status.get("base_url", ""))
    for wanted in (name, url):
        try:
            _, section = upstream_named(wanted, settings)
        except ConfigError:
            continue  # it is named like none that is known: then by its address
        if base_url_of(section) == url:
            return {name: section}
    return {}


async def _on_this_machine() -> Mapping[str, UpstreamSettings]:
    """Return the first local preset whose server answers."""
    transports = Transports()
    try:
        found = await find_local(transports)
    finally:
        await transports.close()
    return {found[0]: UpstreamSettings(type=found[0])} if found else {}


async def section_of(around: Surroundings, name: str) -> UpstreamSettings:
    """Return the section of an upstream that is looked at."""
    return (await upstreams_of(around))[name]


@once
async def open_upstream(around: Surroundings, name: str) -> HttpUpstream:
    """Return an upstream with its own API and key, and what is known of its models."""
    settings, section = await around.settings(), await section_of(around, name)
    for value in values_to_hide(settings, [section]):
        around.redactor.add(value)
    keys = [await _key(around, one) for one in keys_wanted(name, section)]
    return HttpUpstream(
        make_spec(name, section, settings),
        await _open_transports(around),
        keys[0] if len(keys) == 1 else KeyPool(keys),
        profiles=Profiles(around.paths.profiles),
    )


@once
async def _open_transports(around: Surroundings) -> Transports:
    transports = Transports()
    around.on_close.append(transports.close)
    return transports


@once
async def _key(around: Surroundings, wanted: KeyWanted) -> UpstreamKey:
    """Return the key that its check and the upstream share: a store may prompt."""
    ladder = make_ladder(around.paths, around.environ)
    local = is_loopback(wanted.base_url)
    return UpstreamKey(ladder, wanted, around.redactor, local=local)


@once
async def list_models(around: Surroundings, name: str) -> Sequence[str]:
    """Return the models that an upstream lists; it is asked once.

    Raises:
        ByokError: it did not list them.
    """
    return await (await open_upstream(around, name)).models()


async def default_id(around: Surroundings) -> str:
    """Return the id of the model that clients get by default; "" if none is known."""
    if status := await around.ask_if_running(Service.DAEMON):
        return str(status.get("model", ""))
    routing = (await around.settings()).routing
    return routing.meant_by(routing.default)


async def model_of(around: Surroundings, name: str) -> str:
    """Return the model of an upstream that is looked at: its default.

    Raises:
        CannotCheck: none is known.
    """
    wanted = await default_id(around)
    prefix, first = f"byok:{name}:", next(iter(await upstreams_of(around)))
    if wanted.startswith(prefix) and wanted != f"{prefix}{PLACEHOLDER}":
        return wanted.removeprefix(prefix)
    if wanted and name == first and not wanted.startswith("byok:"):
        return wanted
    section = await section_of(around, name)
    upstream = await open_upstream(around, name)
    try:
        return await choose_model(upstream, section, partial(list_models, around, name))
    except UpstreamError as error:
        raise CannotCheck("no model of it is known") from error
    except ConfigError as error:
        raise CannotCheck("it lists no models") from error


async def check_choice(around: Surroundings) -> CheckResult:
    """Check that there is a model to ask at all."""
    names = [*await upstreams_of(around)]
    if names:
        return good(f"{len(names)} of the settings or the daemon: {', '.join(names)}")
    status = await around.ask_if_running(Service.DAEMON)
    if status is not None:
        return doubtful(
            f"the daemon uses {status.get('upstream')}: no model", _NAME_ONE
        )
    return doubtful(
        "none is named and no local server answers: byok would use a key that it "
        "finds, or its demo",
        _NAME_ONE,
    )


async def check_models(around: Surroundings, name: str) -> CheckResult:
    """Check that an upstream lists its models with the key as it is."""
    try:
        listed = await list_models(around, name)
    except UpstreamError as error:
        # A server that knows no such path may answer chats all the same.
        status = error.upstream_status if isinstance(error, UpstreamRefused) else 0
        if status not in (404, 405, 501):
            return wrong(error.message, error.hint or f"byok keys test {name}")
        listed = ()
    section = await section_of(around, name)
    if not listed and (own := [*filter(None, (section.model, *section.models))]):
        return good(f"it has none; {len(own)} of the settings")
    if not listed:
        cure = f"Name one: model under [upstreams.{name}]"
        if (await open_upstream(around, name)).spec.vendor == OLLAMA:
            cure = f"To get a model for Ollama: ollama pull {SUGGESTED_MODEL}"
        return doubtful("it has none, and the settings name no model", cure)
    return good(f"{len(listed)} listed, such as {listed[0]}")


@once
async def wanted_keys(around: Surroundings) -> Mapping[str, KeyWanted]:
    """Return the keys by title: the upstream, and the key's name if several."""
    upstreams = await upstreams_of(around)
    keys = (one for n, section in upstreams.items() for one in keys_wanted(n, section))
    return {wanted.title: wanted for wanted in keys}


async def check_key(around: Surroundings, title: str) -> CheckResult:
    """Check where a key comes from; a store that cannot be read is named."""
    wanted = (await wanted_keys(around))[title]
    await open_upstream(around, wanted.name)  # so that its headers are known as secrets
    key = await _key(around, wanted)
    try:
        value = await key.get()
    except KeyMissing as error:
        return await _no_key(around, wanted, error)
    except ConfigError as error:
        return wrong(str(error), error.hint or f"byok keys set {wanted.command_name}")
    if not value and is_loopback(wanted.base_url):  # as the daemon does
        return good("it is asked without one, or with a stored one if it refuses")
    if not value:
        return good("none is set: it is asked without one")
    if not await _daemon_has_it(around, wanted, key.source):
        return wrong(
            f"from {key.source} here, and the running daemon does not have it",
            "byok restart in this shell, or store it: byok keys set "
            f"{wanted.command_name}",
        )
    return good(f"from {key.source}")


async def _no_key(
    around: Surroundings, wanted: KeyWanted, error: KeyMissing
) -> CheckResult:
    row = await _row_of_daemon(around, wanted)
    if row.get("fingerprint"):
        return good(f"the running daemon has it, from {row.get('source')}")
    return wrong(error.message, error.hint)


async def _daemon_has_it(around: Surroundings, wanted: KeyWanted, source: str) -> bool:
    """Tell whether the daemon has the key too, where it may have another environment.

    Other sources are the same for both; they are not asked twice, as they may prompt.
    """
    if source not in (*wanted.variables, _CREDENTIAL) or await around.running() is None:
        return True
    row = await _row_of_daemon(around, wanted)
    return not row or bool(row.get("fingerprint"))


async def _row_of_daemon(around: Surroundings, wanted: KeyWanted) -> Json:
    """Return what the daemon tells of a key; {} if it tells nothing."""
    answer = await around.ask_if_running(Service.KEYS) or {}
    rows = [row for row in answer.get("keys", ()) if row["upstream"] == wanted.title]
    return rows[0] if rows else {}


async def check_web_tools(around: Surroundings) -> CheckResult:
    """Check that the daemon has the provider's key, and how the last call went."""
    features = (await around.ask(Service.DAEMON)).get("features") or {}
    rows = [row for row in features.get("web", ()) if row["kind"] == "line"]
    wanted = web_key_wanted(await around.settings())
    has_key = (await _row_of_daemon(around, wanted)).get("fingerprint")
    if wanted.base_url and not has_key:
        return wrong("the key is missing", f"byok keys set {wanted.title}")
    if failed := next((row["text"] for row in rows if row["warns"]), ""):
        return doubtful(failed, "see what it says, and [web] in the settings")
    return good(rows[0]["text"] if rows else "no model was offered them yet")


@once
async def models_by_use(around: Surroundings) -> Mapping[str, tuple[str, str]]:
    """Return upstream and model for each use, the default first.

    Those that nobody knows are left out.
    """
    settings = await around.settings()
    upstreams = await upstreams_of(around)
    uses = [(one.use, one.model) for one in chosen_models(settings) if one.model]
    found: dict[str, tuple[str, str]] = {}
    for use, wanted in [(_DEFAULT, await default_id(around)), *uses]:
        whole = settings.routing.meant_by(wanted)
        name, model = split_id(whole) or (next(iter(upstreams), ""), whole)
        if name in upstreams and model and model != _DEFAULT:
            found.setdefault(use, (name, model))
    if _DEFAULT not in found and upstreams:
        first = next(iter(upstreams))
        found = {_DEFAULT: (first, ""), **found}
    return found


async def check_model(around: Surroundings, use: str) -> CheckResult:
    """Check that its upstream has the model that is chosen for something."""
    name, model = (await models_by_use(around))[use]
    model = model or await model_of(around, name)
    section = await section_of(around, name)
    try:
        listed = await list_models(around, name)
    except (CannotCheck, ByokError):
        return skip(f"{model}: the list of {name} is not known")
    if _is_there(model, listed):
        return good(f"{name} lists the model {model}")
    vendor = (await open_upstream(around, name)).spec.vendor
    if model in section.models or model in known_table().models_of(vendor):
        return good(f"{model} of {name}, which does not list it")
    if not listed:
        return skip(f"{model}: {name} lists no models")
    guess = did_you_mean(model, listed[:_MOST_COMPARED])
    key = "routing.default" if use == _DEFAULT else f"{use} under [routing]"
    if use == _DEFAULT and section.model == model:
        key = f"model under [upstreams.{name}]"
    cure = f"byok models shows all; correct {key} in the settings."
    if key == "routing.default" and not (await around.settings()).routing.default:
        cure = "byok models shows all; start byok with another --model."
    return wrong(f"{name} has no model {model}", f"{cure} {guess}".rstrip())


def _is_there(model: str, listed: Sequence[str]) -> bool:
    """Tell whether a list has a model, or a dated one for which the name stands."""
    names = {name.removeprefix("models/") for name in listed}
    plain = model.removeprefix("models/")
    dated = (name.startswith(f"{plain}-20") for name in names)
    return plain in names or f"{plain}{_LATEST}" in names or any(dated)


async def check_window(around: Surroundings, name: str) -> CheckResult:
    """Check that the window of an upstream's default model is known and large enough.

    The server of a local model may have loaded it with a small part of its window.
    """
    upstream = await open_upstream(around, name)
    model = await model_of(around, name)
    try:
        await list_models(around, name)
    except UpstreamUnreachable as error:
        raise CannotCheck("it does not answer") from error
    except ByokError:
        pass  # a list may know the window, and need not
    window = await upstream.window(model)
    known, spec = upstream.known.sourced_facts(model), upstream.spec
    if not window:
        return doubtful(
            f"that of {model} is unknown, so long conversations are not shortened",
            f"context_window = TOKENS under [upstreams.{name}]",
        )
    dialect = spec.api.dialect
    said = f"{window:,} tokens of {model}, by the {known.sources.get('window', 'list')}"
    is_loaded = known.sources.get("window") is FactSource.LOADED
    if dialect.loads_window and window < min(known.facts.window, _SMALL):
        said = f"num_ctx cuts that of {model} to {window:,} of {known.facts.window:,}"
    elif is_loaded and not dialect.loads_window and window < _SMALL:
        said = f"its server cuts that of {model} to {window:,} tokens, without a word"
    if window >= _SMALL:
        return good(said)
    judge = wrong if window < _TOO_SMALL else doubtful
    return judge(
        f"{said}: too small for an agent", window_cure(spec.vendor, dialect.name)
    )


async def asked_upstreams(around: Surroundings) -> Iterable[str] | CheckResult:
    """Return the upstreams whose models are asked; why not where none is."""
    return await upstreams_of(around) if around.asks_models else _NOT_ASKED


@once
async def _prober(around: Surroundings, name: str) -> Prober:
    upstream = await open_upstream(around, name)
    return Prober(upstream, await model_of(around, name), seconds=QUESTION_SECONDS)


@once
async def _answer(around: Surroundings, name: str) -> ProbeAnswer:
    """Return the answer to one question of a few words."""
    return await (await _prober(around, name)).ask_first(count_to_thirty())


async def check_chat(around: Surroundings, name: str) -> CheckResult:
    """Check that the default model of an upstream answers."""
    answer, model = await _answer(around, name), await model_of(around, name)
    cure = f"byok probe {quote(f'{name}/{model}')}"
    if answer.error:
        return wrong(f"{model}: {answer.error.message}", answer.error.hint or cure)
    if not answer.text.strip():
        return wrong(f"{model} answered without a word", cure)
    return good(f"{model} answered in {answer.seconds:.1f} s")


async def check_streaming(around: Surroundings, name: str) -> CheckResult:
    """Check that the answer came in pieces."""
    answer = await _answer(around, name)
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


async def check_tool_call(around: Surroundings, name: str) -> CheckResult:
    """Check that the model calls a tool, as agents need it."""
    if (await _answer(around, name)).error:  # nor are two questions asked at once
        raise CannotCheck("there was no answer")
    prober = await _prober(around, name)
    finding = await try_tool(prober, ProbeState())
    if finding.outcome is ProbeOutcome.YES:
        return good(f"{prober.model} calls a tool, {finding.detail}")
    judge = doubtful if finding.outcome is ProbeOutcome.NO else wrong
    return judge(
        f"{prober.model} calls no tool: {finding.detail}",
        "Agents need tools: choose another model (byok models)",
    )
