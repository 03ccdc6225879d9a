"""The steps of `byok init`: upstream, key, settings, daemon, editor, first request."""

import asyncio
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer
from msgspec import structs

from byok.cli.command_context import load
from byok.cli.connect import Approval, approve_change, offer_connection
from byok.cli.control import END_IT, find_or_start, find_service, start_in_background
from byok.cli.daemon_client import ask_daemon, find_daemon
from byok.cli.init_survey import (
    DEFAULT,
    Candidate,
    ChosenModel,
    FoundBy,
    choose_models,
    find_key,
    is_about_key,
    list_models,
    make_candidate,
    one_key,
    survey,
    usable_candidates,
)
from byok.cli.keys import ask_for_key, choose_store, open_vault
from byok.cli.log import follow_entries
from byok.cli.service import install
from byok.cli.terminal import (
    Asker,
    fail,
    find_asker,
    say,
    say_table,
    show_progress,
    tell,
)
from byok.clients.document import put_all
from byok.clients.locations import EDITORS, find_location, find_machine
from byok.clients.settings_text import (
    MISSING,
    Setting,
    SettingPath,
    TextFormat,
    decode_text,
    encode_text,
    find_value,
)
from byok.core.daemon.instance import Instance
from byok.core.errors import (
    ByokError,
    CannotStart,
    ConfigError,
    KeyMissing,
    UpstreamRefused,
)
from byok.core.platform.paths import Paths
from byok.core.redact import Redactor
from byok.core.routing import ListedModel, Purpose, Service
from byok.core.urls import is_loopback
from byok.dialects.model_facts import ModelFacts
from byok.dialects.presets import (
    OLLAMA,
    OPENAI_COMPATIBLE,
    SUGGESTED_MODEL,
    find_preset,
)
from byok.features.journal.entry import JournalEntry
from byok.features.journal.requests import LogFilter, StoredEntry, highest_number
from byok.features.settings import JournalSettings
from byok.settings import Settings, check_settings, upstream_named
from byok.settings.keys import KeyLadder, clean_key, fingerprint
from byok.settings.keys.keyring_store import KeyringStore
from byok.settings.keys.vault import Vault
from byok.settings.own_file import read_own_settings, write_own_settings
from byok.wiring.key_sources import key_lookup

_NOTHING = (
    "No model server runs on this machine, and no key was found. You can start Ollama, "
    "LM Studio, llama.cpp or vLLM and try again; or name a vendor whose key you have, "
    "such as openrouter; or try byok without a model: demo."
)
_NO_CHOICE = "There is no upstream that could be used."
_LIST_SECONDS = 30.0  # for the list of models
_MAX_KEYS = 3  # tries to type a key that the upstream takes
_SERVICE = "Keep byok running, from login on, as a service of your user?"
_START = "Start byok now, in the background?"
_NEXT_EDITS = (
    "Suggest next edits, by a request after every pause in typing, which costs tokens?"
)
_MAX_FAILURES = 10  # that are reported while byok waits for the first answer
_OTHERS = "Other clients: byok connect jetbrains | cli | sdk | codex | opencode ..."
_EVERYTHING = LogFilter(everything=True)
_HEAD = "# Made by byok init. Every setting: byok config example\n"
_ROUTING, _MODELS = "routing", "models"
_SMALL_JOBS = ("commit", "title")
_CLIENTS = {
    "vscode": "VS Code (extension {})",
    "intellij": "A JetBrains IDE (plugin {})",
    "cli": "The CLI {}",
    "sdk": "The SDK {}",
}


class Setup(NamedTuple):
    """What all steps share: the user's settings, files and keys, and who answers."""

    settings: Settings
    paths: Paths
    asker: Asker
    ladder: KeyLadder
    keyring: KeyringStore
    vault: Vault


def set_up(upstream: str, *, yes: bool, no_wait: bool) -> None:
    """Run all steps of `byok init`."""
    settings, paths = load()
    asker, vault = (
        find_asker("byok init --yes --upstream NAME", yes=yes),
        open_vault(paths),
    )
    last_number = last_request(paths)
    if asker.is_person:
        vault.open()  # now, as the survey looks up keys in several threads
    ladder = KeyLadder(vault=vault)
    setup = Setup(settings, paths, asker, ladder, KeyringStore(), vault)
    candidates = []
    if not upstream:
        with show_progress("looking for model servers and keys"):
            candidates = asyncio.run(survey(settings, ladder))
        show_candidates(candidates)
    candidate = choose_candidate(candidates, upstream, setup)
    models = find_models(candidate, setup)
    write_settings(candidate, choose_and_show(candidate, models), paths, asker)
    daemon = run_daemon(
        paths,
        settings.server.port,
        candidate.name,
        asker,
        can_install=can_install_service,
    )
    if daemon is None:
        return
    is_connected = offer_editors(asker)
    tell("Watch it at work in your browser: byok dashboard")
    if no_wait or not sys.stdin.isatty():
        return
    if is_connected:
        wait_for_first(paths, last_number, settings.section(JournalSettings).keep_days)
    else:
        tell("No editor is connected yet. byok runs, and waits for one.")


def show_candidates(candidates: Sequence[Candidate]) -> None:
    """Print the candidates, with the numbers by which they can be chosen."""
    if not candidates:
        tell(_NOTHING)
        return
    rows = [
        (str(number), c.name, c.found_by.value, c.address, c.detail)
        for number, c in enumerate(candidates, 1)
    ]
    say_table("", "upstream", "found", "address", "", rows=rows, right=("",))
    if any(c.section.type == OLLAMA and c.trouble for c in candidates):
        tell(f"To get a model for Ollama: ollama pull {SUGGESTED_MODEL}")


def choose_candidate(
    candidates: Sequence[Candidate], name: str, setup: Setup
) -> Candidate:
    """Return the upstream with the name of `--upstream`, or let the user choose.

    Raises:
        ConfigError: it is unknown, or nobody can be asked and the choice is not clear.
    """
    if name:
        return _find_by_name(name, candidates, setup)
    usable = usable_candidates(candidates)
    if setup.asker.is_person:
        return _ask_for_candidate(candidates, usable, setup)
    if not usable or not (len(usable) == 1 or setup.asker.takes_best):
        names = ", ".join(c.name for c in usable)
        problem = f"Several upstreams could be used: {names}." if names else _NO_CHOICE
        raise ConfigError(problem, hint="Name one: byok init --upstream NAME")
    return usable[0]


def _ask_for_candidate(
    candidates: Sequence[Candidate], usable: Sequence[Candidate], setup: Setup
) -> Candidate:
    default = str(candidates.index(usable[0]) + 1) if usable else ""
    question = "Which one? A number, another name, or a URL"
    if not candidates:
        question = "Which one? A vendor's name, a URL, or demo"
    while True:
        answer = setup.asker.text(question, default)
        if answer.isdecimal() and 0 < int(answer[:4]) <= len(candidates):
            return candidates[int(answer[:4]) - 1]
        try:
            return _find_by_name(answer, candidates, setup)
        except ConfigError as error:
            fail(error)


def _find_by_name(
    name_or_url: str, candidates: Sequence[Candidate], setup: Setup
) -> Candidate:
    for candidate in candidates:
        if candidate.name == name_or_url:
            return candidate
    name, section = upstream_named(name_or_url, setup.settings)
    existing = setup.settings.upstreams.get(name)
    if existing is not None and existing != section:
        raise ConfigError(
            f"The settings have another upstream that is called {name}.",
            hint="Give that one a name of its own in your settings (byok config path).",
        )
    candidate = make_candidate(name, section, FoundBy.NAME)
    if candidate.address and not is_loopback(candidate.address):
        candidate = structs.replace(find_key(candidate, setup.ladder), trouble="")
    return candidate


def find_models(candidate: Candidate, setup: Setup) -> tuple[ModelFacts, ...]:
    """Return the models of the chosen upstream, which proves that it accepts the key.

    A person without a key is asked for one; it is stored once it was accepted.

    Raises:
        ConfigError: there is no key, or no store to write one into.
        UpstreamError: it refuses the key, or lists no models.
    """
    if candidate.models:
        return candidate.models
    try:
        return _list_models(candidate, setup.settings, setup.ladder)
    except KeyMissing:
        if not _can_ask_for_key(candidate, setup.asker):
            raise
    except UpstreamRefused as error:
        if not (is_about_key(error) and _can_ask_for_key(candidate, setup.asker)):
            if is_about_key(error) and candidate.key_source:
                tell(f"The key comes from {candidate.key_source}; correct it there.")
            raise
        tell(error.sentence)
    return _ask_for_new_key(candidate, setup)


def _can_ask_for_key(candidate: Candidate, asker: Asker) -> bool:
    """Tell whether a stored key would be used: a key from elsewhere outranks it."""
    section, source = candidate.section, candidate.key_source
    is_configured = section.api_key_env or section.api_key_cmd or section.key_names
    is_stored = source in ("", KeyringStore.label, Vault.label)
    return asker.is_person and is_stored and not is_configured


def _ask_for_new_key(candidate: Candidate, setup: Setup) -> tuple[ModelFacts, ...]:
    name, asker = candidate.name, setup.asker
    lookup = key_lookup(name, candidate.section)
    # The store is chosen first, so that no key is typed that cannot be stored.
    store = choose_store(lookup, setup.keyring, setup.vault, asker)
    for _ in range(_MAX_KEYS):
        typed = ask_for_key(lookup, asker)
        try:
            key = clean_key(typed)
            models = _list_models(candidate, setup.settings, one_key(name, key))
        except UpstreamRefused as error:
            if not is_about_key(error):
                raise
            tell(error.sentence)
            continue
        except ConfigError as error:
            tell(error.sentence)
            continue
        store.set(lookup.entry, key)
        say(f"Stored the key (fingerprint {fingerprint(key)}) in the {store.label}.")
        return models
    raise ConfigError(f"{name} took none of these keys. Nothing was stored or changed.")


def _list_models(
    candidate: Candidate, settings: Settings, ladder: KeyLadder
) -> tuple[ModelFacts, ...]:
    is_local = is_loopback(candidate.address)
    seconds = _LIST_SECONDS / 3 if is_local else _LIST_SECONDS
    try:
        with show_progress(f"asking {candidate.name} for its models"):
            return asyncio.run(list_models(candidate, settings, ladder, seconds))
    except TimeoutError:
        raise ConfigError(
            f"{candidate.name} ({candidate.address}) did not list its models within "
            f"{seconds:.0f} seconds. Nothing was changed.",
            hint="Try again: byok init",
        ) from None


def choose_and_show(
    candidate: Candidate, models: Sequence[ModelFacts]
) -> list[ChosenModel]:
    """Return a model for each purpose, after printing them with the reasons."""
    vendor = find_preset(candidate.section.type, candidate.address)
    choices = choose_models(vendor, models)
    if choices:
        rows = [(c.purpose, c.model or "-", c.reason) for c in choices]
        say_table("for", "model", "why", rows=rows)
    else:
        tell(f"{candidate.name} lists no models, so none is chosen.")
        if vendor == OLLAMA:
            tell(f"Get one, then run byok init again: ollama pull {SUGGESTED_MODEL}")
    return choices


def write_settings(
    candidate: Candidate, choices: Sequence[ChosenModel], paths: Paths, asker: Asker
) -> bool:
    """Add the missing settings to the settings file; return whether anything changed.

    Next edits cost tokens, so a person is asked before a hosted model is set for them.

    Raises:
        ConfigError: the file cannot be extended, or there is nobody to ask.
        typer.Exit: the user does not want it.
    """
    file = read_own_settings(paths.config, Path.home())
    plan = plan_settings(file.raw, candidate, choices)
    others = [choice for choice in choices if choice.purpose != Purpose.NEXT_EDIT]
    without = plan_settings(file.raw, candidate, others)
    must_ask = plan.after != without.after and not is_loopback(candidate.address)
    if must_ask and not (asker.is_person and asker.confirm(_NEXT_EDITS, default=False)):
        plan = without
    if plan.kept:
        names = ", ".join(".".join(path) for path in plan.kept)
        tell(f"Your settings say otherwise, and stay: {names}")
    if plan.after == (file.raw or b""):
        say(f"{file.path} needs no change.")
        return False
    if file.raw is None and not asker.is_person:
        asker = Asker(takes_best=True)  # a new file changes nothing of the user's
    if not approve_change(file, plan.after, Redactor(), Approval(asker, default=True)):
        raise typer.Exit(1)
    backup = write_own_settings(paths, file, plan.after)
    say(f"Wrote {file.path}." + (f" The former file is {backup}." if backup else ""))
    return True


def run_daemon(
    paths: Paths,
    port: int,
    upstream: str,
    asker: Asker,
    *,
    can_install: Callable[[Paths], bool],
) -> Instance | None:
    """Return the daemon; if none runs, offer to install its service or to start it.

    Raises:
        ByokError: it does not start, or refuses the settings.
    """
    if daemon := find_or_start(paths):
        _apply_settings(upstream)
        return daemon
    if asker.is_person and can_install(paths) and asker.confirm(_SERVICE):
        install()
        return find_daemon(paths)
    if (asker.is_person or asker.takes_best) and asker.confirm(_START):
        daemon = start_in_background(paths, port)
        say(f"byok is listening on {daemon.url}. {END_IT}")
        return daemon
    say("Start it when you like: byok serve, or byok service install")
    return None


def can_install_service(paths: Paths) -> bool:
    """Tell whether byok can be installed as a service of this system."""
    try:
        service = find_service(paths)
        service.check_system()
        return not service.is_for_others()
    except ByokError:  # a service is offered only where it surely works
        return False


def _apply_settings(upstream: str) -> None:
    """Make the running daemon reload the settings; print which model it uses."""
    ask_daemon(Service.RELOAD)
    answer = ask_daemon(Service.DAEMON) or {}
    model = str(answer.get("model", ""))
    say(f"byok runs, and uses {model}.")
    if answer.get("upstream") != upstream and not model.startswith(f"byok:{upstream}:"):
        tell(f"It does not use {upstream} by itself: {answer.get('reason')}.")


def offer_editors(asker: Asker) -> bool:
    """Offer to point each installed editor at byok; return whether any does."""
    if not asker.is_person:
        tell("Point your editor at it: byok connect vscode --write")
        return False
    is_connected, machine = False, find_machine()
    for client in EDITORS:
        if not find_location(client, machine).path.parent.is_dir():
            continue
        tell(f"Found {client.facts.name}.")
        try:
            is_connected = offer_connection(client, asker) or is_connected
        except ByokError as error:
            fail(error)
    tell(_OTHERS)
    return is_connected


def last_request(paths: Paths) -> int:
    """Return the number of the last request in the journal, 0 if it is unreadable."""
    try:
        return highest_number(paths.journal)
    except CannotStart:  # the daemon sets a damaged journal aside and starts a new one
        return 0


def wait_for_first(paths: Paths, last_number: int, keep_days: int) -> None:
    """Wait until a client was answered, and print which; Ctrl-C ends the waiting."""
    if not keep_days:
        tell("The journal is off, so byok cannot tell when your editor comes.")
        return
    try:
        tell("Reload your editor's window.")
        tell("Waiting for its first request (Ctrl-C ends it)")
        _report_first(follow_entries(paths.journal, last_number, _EVERYTHING))
    except CannotStart as error:
        fail(error)
    except KeyboardInterrupt:
        tell("byok goes on without waiting. byok status tells who asked it.")


def _report_first(batches: Iterable[Iterable[StoredEntry]]) -> None:
    """Print the first client that was answered, and the failures before that."""
    reported = set[str]()
    for entry in (stored.entry for batch in batches for stored in batch):
        who = describe_client(entry.client)
        if entry.outcome == "ok":
            say(f"{who} is connected, model {_model_of(entry)}.")
            return
        failure = f"{who} asked, and it failed: {entry.error or entry.outcome}."
        if failure not in reported and len(reported) < _MAX_FAILURES:
            reported.add(failure)
            tell(f"{failure} See: byok log --errors")


def _model_of(entry: JournalEntry) -> str:
    """Return the model that answered; the daemon's default if no model was needed."""
    if entry.model:
        return f"{entry.upstream}:{entry.model}"
    answer = ask_daemon(Service.DAEMON) or {}
    return str(answer.get("model", "")).removeprefix("byok:")


def describe_client(client: str) -> str:
    """Describe a client such as `vscode/0.600.1` for people."""
    family, _, version = client.partition("/")
    words = _CLIENTS.get(family)
    if words is None:
        return client if version else "A client"
    return words.format(version or "of an unknown version")


class SettingsPlan(NamedTuple):
    """The new content of the file; `kept` are paths whose own value stays."""

    after: bytes
    kept: tuple[SettingPath, ...] = ()


def plan_settings(
    before: bytes | None, candidate: Candidate, models: Iterable[ChosenModel]
) -> SettingsPlan:
    """Plan the settings of an upstream and its models; settings of the file stay.

    Raises:
        ConfigError: the file cannot be extended without another change.
    """
    try:
        decoded = decode_text(before or b"")
        text = decoded.text
        existing = tomllib.loads(text)
        additions, kept = _find_additions(existing, candidate, models)
        if not additions:
            return SettingsPlan(before or b"", kept)
        new = put_all(text or _HEAD, additions, TextFormat.TOML)
        _check(text, new)
    except ValueError as error:
        raise ConfigError(
            f"The settings file cannot be extended: {error}. Nothing was changed.",
            hint="Add the upstream by hand; byok config example shows how.",
        ) from None
    return SettingsPlan(encode_text(decoded._replace(text=new)), kept)


def _find_additions(
    existing: Mapping[str, Any], candidate: Candidate, models: Iterable[ChosenModel]
) -> tuple[list[Setting], tuple[SettingPath, ...]]:
    """Return the settings to add, and the paths that have another value already."""
    additions, kept = list[Setting](), list[SettingPath]()
    name, section = candidate.name, candidate.section
    table, upstream = ("upstreams", name), list[Setting]()
    if section.type != OPENAI_COMPATIBLE:
        upstream.append(Setting((*table, "type"), section.type))
    if section.base_url:
        upstream.append(Setting((*table, "base_url"), section.base_url))
    if find_value(existing, table) is MISSING:
        additions += upstream
    else:
        kept += [setting.path for setting in upstream if _differs(existing, setting)]
    small = (_ROUTING, _MODELS, "small")
    choices = [choice for choice in models if choice.model]
    for purpose, model, _ in choices:
        path = (_ROUTING, *(() if purpose == DEFAULT else (_MODELS,)), purpose)
        setting = Setting(path, ListedModel(name, model).id)
        if find_value(existing, path) is not MISSING:
            kept += [path] if _differs(existing, setting) else []
            if purpose == DEFAULT and kept[-1:] == [path]:
                break  # the other models would not belong to that default
        elif purpose not in _SMALL_JOBS or find_value(existing, small) is MISSING:
            additions.append(setting)
    return additions, tuple(kept)


def _differs(existing: Mapping[str, Any], setting: Setting) -> bool:
    value = find_value(existing, setting.path)
    return value is not MISSING and value != setting.value


def _check(old: str, new: str) -> None:
    """Check that all lines of the old text remain, and that byok can use the new one.

    `put_all` has already proved that no other setting differs.

    Raises:
        ValueError: a line is missing, or byok would not start with the new text.
    """
    remaining = iter(new.splitlines())  # each `in` goes on behind the line it found
    if not all(line in remaining for line in old.splitlines()):
        raise ValueError("a line of it would change")
    arguments: dict[str, Any] = {"_toml": tomllib.loads(new)}
    try:
        check_settings(Settings(**arguments))
    except ConfigError as error:
        raise ValueError(str(error).rstrip(".")) from None
