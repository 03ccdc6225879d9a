"""The upstreams, keys and models that `byok init` offers; `init_steps` asks about them.

Upstreams are those of the settings, local servers, and vendors with a key. Requests go
only to servers on this machine, without a key, as any program may listen on their
ports. Their answers are limited in size, number and time.
"""

import asyncio
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from byok.cli.terminal import count_noun
from byok.core.errors import (
    ByokError,
    ConfigError,
    KeyMissing,
    RefusalKind,
    UpstreamError,
    UpstreamRefused,
)
from byok.core.redact import Redactor
from byok.core.routing import ListedModel, Purpose, split_id
from byok.core.urls import is_loopback
from byok.dialects.default_models import (
    choose_chat_model,
    choose_job_model,
    patterns_of,
)
from byok.dialects.fim_templates import template_of
from byok.dialects.model_facts import ModelFacts
from byok.dialects.presets import DEMO, PRESETS
from byok.settings import Settings, UpstreamSettings
from byok.settings.keys import KeyLadder
from byok.settings.keys.keyring_store import KeyringStore
from byok.settings.keys.ladder import own_variable
from byok.upstream.demo import MODEL as DEMO_MODEL
from byok.wiring.apis import base_url_of
from byok.wiring.key_sources import key_lookups
from byok.wiring.upstreams import open_probed

_LOCAL_SECONDS = 2.0
_MAX_MODELS = 500
_NO_MODELS = "it has no models yet"
_NO_KEY = "no key was found"
DEFAULT = "default"
RERANK = "rerank"
_SMALL_JOBS = (Purpose.COMMIT.value, Purpose.TITLE.value, RERANK)


class FoundBy(StrEnum):
    """How an upstream was found; the value is shown to users."""

    SETTINGS = "your settings"
    SERVER = "runs on this machine"
    KEY = "has a key"
    NAME = "named by you"


class Candidate(Struct, frozen=True):
    """An upstream that could be used.

    `models` are those that a local server lists; hosted upstreams are not asked before
    they are chosen. `key_source` is where its key comes from, never the key. `trouble`
    is why the upstream cannot be used now, "" if it can. `is_offered` is False for a
    vendor whose key often has other uses, so that byok does not choose it by itself.
    """

    name: str
    section: UpstreamSettings
    address: str
    found_by: FoundBy
    models: tuple[ModelFacts, ...] = ()
    key_source: str = ""
    trouble: str = ""
    is_offered: bool = True

    @property
    def detail(self) -> str:
        """The trouble, or the source of the key and the number of models."""
        if self.trouble:
            return self.trouble
        parts = [f"key in {self.key_source}"] if self.key_source else []
        if self.models:
            parts.append(count_noun(len(self.models), "model"))
        return ", ".join(parts)


def usable_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return those that can be used and may be chosen without a question."""
    return [c for c in candidates if c.is_offered and not c.trouble]


class _EmptyKeyring(KeyringStore):
    """A keyring without keys, for requests that must not send one."""

    def get(self, entry: str) -> str | None:
        return None


def one_key(name: str, key: str) -> KeyLadder:
    """Return a ladder that has only this key, for the upstream of this name."""
    return KeyLadder(environ={own_variable(name, ""): key}, keyring=_EmptyKeyring())


async def survey(
    settings: Settings, ladder: KeyLadder, seconds: float = _LOCAL_SECONDS
) -> list[Candidate]:
    """Return the upstreams that could be used, the best first.

    Upstreams of the settings come first, that of the default model before the others;
    then local servers, then vendors whose key is found, those chosen only by name last.
    A server has `seconds` to answer.
    """
    first, _ = split_id(settings.routing.default) or ("", "")
    names = sorted(settings.upstreams, key=lambda name: name != first)
    sections = ((name, settings.upstreams[name]) for name in names)
    own = [make_candidate(*section, FoundBy.SETTINGS) for section in sections]
    absent = [n for n in PRESETS if n not in settings.upstreams]
    vendors = [
        make_candidate(n, UpstreamSettings(type=n), FoundBy.KEY)
        for n in sorted(absent, key=lambda n: PRESETS[n].only_by_name)
    ]
    configured, servers, keyed = await asyncio.gather(
        asyncio.gather(*(_inspect(c, settings, ladder, seconds) for c in own)),
        asyncio.gather(
            *(
                _ask_server(replace(c, found_by=FoundBy.SERVER), settings, seconds)
                for c in vendors
                if PRESETS[c.name].local
            )
        ),
        asyncio.to_thread(
            lambda: [
                replace(with_key, is_offered=not PRESETS[c.name].only_by_name)
                for c in vendors
                if PRESETS[c.name].key_env and c.address
                if (with_key := find_key(c, ladder)).trouble != _NO_KEY
            ]
        ),
    )
    return [*configured, *(server for server in servers if server is not None), *keyed]


def make_candidate(
    name: str, section: UpstreamSettings, found_by: FoundBy
) -> Candidate:
    """Return a candidate whose key and models are not known yet."""
    return Candidate(name, section, base_url_of(section), found_by)


async def list_models(
    candidate: Candidate,
    settings: Settings,
    ladder: KeyLadder,
    seconds: float | None = None,
) -> tuple[ModelFacts, ...]:
    """Return the models that an upstream lists, with a key from this ladder.

    Names that clients cannot send back in an id are left out.

    Raises:
        ConfigError: it needs a key, and there is none.
        UpstreamError: it refuses the key, or lists no models.
        TimeoutError: it took longer than `seconds`.
    """
    name, section = candidate.name, candidate.section
    if section.type == DEMO:
        return (ModelFacts(DEMO_MODEL),)
    redactor = Redactor()
    try:
        async with (
            asyncio.timeout(seconds),
            open_probed(name, section, settings, ladder, redactor) as upstream,
        ):
            names = (await upstream.models())[:_MAX_MODELS]
            facts = upstream.known.listed_facts()
    except ByokError as error:
        raise error.rewrite(redactor) from None
    usable = (m for m in names if split_id(ListedModel(name, m).id) == (name, m))
    return tuple(facts.get(model) or ModelFacts(model) for model in usable)


async def _inspect(
    candidate: Candidate, settings: Settings, ladder: KeyLadder, seconds: float
) -> Candidate:
    """Find the key of an upstream on another machine; ask one on this machine."""
    if candidate.address and not is_loopback(candidate.address):
        return await asyncio.to_thread(find_key, candidate, ladder)
    server = await _ask_server(candidate, settings, seconds)
    return server or replace(candidate, trouble="it does not answer")


async def _ask_server(
    candidate: Candidate, settings: Settings, seconds: float
) -> Candidate | None:
    """Ask a server of this machine for its models; None if none answers."""
    try:
        no_keys = KeyLadder(environ={}, keyring=_EmptyKeyring())
        models = await list_models(candidate, settings, no_keys, seconds)
    except (ConfigError, UpstreamError, TimeoutError) as error:
        wants_key = is_about_key(error)
        return replace(candidate, trouble="it wants a key") if wants_key else None
    return replace(candidate, models=models, trouble="" if models else _NO_MODELS)


def is_about_key(error: Exception) -> bool:
    """Tell whether an upstream refused because of a missing or wrong key."""
    return isinstance(error, UpstreamRefused) and error.kind is RefusalKind.AUTH


def find_key(candidate: Candidate, ladder: KeyLadder) -> Candidate:
    """Add the source of an upstream's key, or why it has none. May block."""
    trouble = _NO_KEY
    for lookup in key_lookups(candidate.name, candidate.section):
        try:
            return replace(candidate, key_source=ladder.find(lookup).source)
        except KeyMissing:
            continue
        except ConfigError as error:
            trouble = str(error)
    return replace(candidate, trouble=trouble)


class ChosenModel(NamedTuple):
    """A model for a purpose, and the reason; model "" stands for that of chats."""

    purpose: str
    model: str
    reason: str


def choose_models(vendor: str, models: Sequence[ModelFacts]) -> list[ChosenModel]:
    """Return a model for chats, small jobs and completions; [] without models.

    Next edits get one only if it is made for them. `vendor` is the name of a preset.
    Summaries and enhanced prompts stay with the model of the chat, which has the
    conversation in its cache.
    """
    chat = choose_chat_model(vendor, models)
    if not chat:
        return []
    facts = next(model for model in models if model.id == chat)
    choices = [ChosenModel(DEFAULT, chat, _reason_for_chat(facts, len(models)))]
    small = choose_job_model(vendor, Purpose.COMMIT, models)
    if small and small != chat:
        choices += [ChosenModel(job, small, "quick and cheap") for job in _SMALL_JOBS]
    completion = choose_job_model(vendor, Purpose.COMPLETION, models)
    choices.append(_choose_completion(vendor, chat, completion))
    if next_edit := choose_job_model(vendor, Purpose.NEXT_EDIT, models):
        reason = "made for it; byok suggests edits then"
        choices.append(ChosenModel(Purpose.NEXT_EDIT.value, next_edit, reason))
    return choices


def _reason_for_chat(facts: ModelFacts, number: int) -> str:
    parts = ["the only one listed" if number == 1 else f"the best of {number} for code"]
    if facts.tools:
        parts.append("takes tools")
    if facts.window:
        parts.append(f"window of {facts.window:,} tokens")
    return ", ".join(parts)


def _choose_completion(vendor: str, chat: str, model: str) -> ChosenModel:
    """Return the model for inline completions, with the reason."""
    if not model:
        reason = "the model of chats: byok knows none here that fills gaps (FIM)"
    elif model == chat:
        model, reason = "", "the model of chats, the quickest here with FIM"
    elif patterns_of(vendor).completion or template_of(model) is not None:
        reason = "fills gaps (FIM)"
    else:
        reason = "quick; none with FIM is listed"
    return ChosenModel(Purpose.COMPLETION.value, model, reason)
