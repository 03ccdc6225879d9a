"""Look for upstreams: those of the settings, local servers, vendors with a key.

Only servers on this machine are asked anything, and without a key: any program may
listen on their ports. Their answers are limited in size, number and time.
"""

import asyncio
from collections.abc import Mapping

from byok.config import Settings, UpstreamSettings
from byok.dialects.model_facts import ModelFacts
from byok.dialects.presets import DEMO, PRESETS
from byok.errors import (
    ByokError,
    ConfigError,
    KeyMissing,
    RefusalKind,
    UpstreamError,
    UpstreamRefused,
)
from byok.keys import KeyLadder
from byok.keys.keyring_store import KeyringStore
from byok.keys.ladder import own_variable
from byok.model_ids import ListedModel, split_id
from byok.redact import Redactor
from byok.setup.candidate import Candidate, FoundBy
from byok.upstream.demo import MODEL as DEMO_MODEL
from byok.urls import is_loopback
from byok.wiring.apis import base_url_of
from byok.wiring.key_sources import key_wanted, keys_wanted
from byok.wiring.probing import open_probed

_LOCAL_SECONDS = 2.0
_MOST_MODELS = 500
_NO_MODELS = "it has no models yet"


class _EmptyKeyring(KeyringStore):
    """A keyring without keys, for requests that must not show one."""

    def get(self, entry: str) -> str | None:
        del entry
        return None


def no_keys() -> KeyLadder:
    """Return a ladder that finds no key."""
    return KeyLadder(environ={}, keyring=_EmptyKeyring())


def one_key(name: str, key: str) -> KeyLadder:
    """Return a ladder that finds one key, for the upstream of this name."""
    return KeyLadder(environ={own_variable(name, ""): key}, keyring=_EmptyKeyring())


async def survey(
    settings: Settings, ladder: KeyLadder, seconds: float = _LOCAL_SECONDS
) -> list[Candidate]:
    """Return what could be used, the best first; a server has `seconds` to answer.

    Upstreams of the settings come first, that of the default model before the others;
    then local servers, then vendors whose key is found.
    """
    sections = _in_order(settings)
    absent = {n: UpstreamSettings(type=n) for n in PRESETS if n not in sections}
    local = {n: s for n, s in absent.items() if PRESETS[n].local}
    hosted = {n: s for n, s in absent.items() if PRESETS[n].key_env and base_url_of(s)}
    own, servers, keyed = await asyncio.gather(
        _look_at_all(sections, settings, ladder, seconds),
        asyncio.gather(
            *(_ask_server(n, s, settings, seconds) for n, s in local.items())
        ),
        asyncio.to_thread(_find_keys, hosted, ladder),
    )
    found = [server for server in servers if server is not None]
    return [*own, *found, *keyed]


async def list_models(
    name: str,
    section: UpstreamSettings,
    settings: Settings,
    ladder: KeyLadder,
    seconds: float | None = None,
) -> tuple[ModelFacts, ...]:
    """Return the models that an upstream lists, with a key from this ladder.

    Names that no client could send back are left out.

    Raises:
        ConfigError: it needs a key, and there is none.
        UpstreamError: it refuses the key, or gives no list.
        TimeoutError: it took longer than `seconds`.
    """
    if section.type == DEMO:
        return (ModelFacts(DEMO_MODEL),)
    redactor = Redactor()
    try:
        async with (
            asyncio.timeout(seconds),
            open_probed(name, section, settings, ladder, redactor) as upstream,
        ):
            names = (await upstream.models())[:_MOST_MODELS]
            known = upstream.known.listed_facts()
    except ByokError as error:
        raise error.redact(redactor) from None
    fit = (model for model in names if _is_fit(name, model))
    return tuple(known.get(model) or ModelFacts(model) for model in fit)


def _is_fit(upstream: str, model: str) -> bool:
    return split_id(ListedModel(upstream, model).id) == (upstream, model)


def _in_order(settings: Settings) -> dict[str, UpstreamSettings]:
    """Return the upstreams of the settings, that of the default model first."""
    first, _ = split_id(settings.routing.default) or ("", "")
    names = sorted(settings.upstreams, key=lambda name: name != first)
    return {name: settings.upstreams[name] for name in names}


async def _look_at_all(
    sections: Mapping[str, UpstreamSettings],
    settings: Settings,
    ladder: KeyLadder,
    seconds: float,
) -> list[Candidate]:
    looking = (_look_at(n, s, settings, ladder, seconds) for n, s in sections.items())
    return [*await asyncio.gather(*looking)]


async def _look_at(
    name: str,
    section: UpstreamSettings,
    settings: Settings,
    ladder: KeyLadder,
    seconds: float,
) -> Candidate:
    """Look at an upstream of the settings; one on another machine is not asked."""
    address = base_url_of(section)
    if not address or is_loopback(address):
        server = await _ask_server(name, section, settings, seconds, FoundBy.SETTINGS)
        silent = Candidate(
            name, section, address, FoundBy.SETTINGS, trouble="it does not answer"
        )
        return server or silent
    source, trouble = await asyncio.to_thread(find_source, name, section, ladder)
    return Candidate(
        name, section, address, FoundBy.SETTINGS, key_source=source, trouble=trouble
    )


async def _ask_server(
    name: str,
    section: UpstreamSettings,
    settings: Settings,
    seconds: float,
    found_by: FoundBy = FoundBy.SERVER,
) -> Candidate | None:
    """Ask a server of this machine for its models; None if none answers."""
    models, trouble = tuple[ModelFacts, ...](), ""
    try:
        models = await list_models(name, section, settings, no_keys(), seconds)
        trouble = "" if models else _NO_MODELS
    except UpstreamError as error:
        if not _wants_key(error):
            return None
        trouble = "it wants a key"
    except (ConfigError, TimeoutError):
        return None
    return Candidate(
        name, section, base_url_of(section), found_by, models, trouble=trouble
    )


def _wants_key(error: UpstreamError) -> bool:
    return isinstance(error, UpstreamRefused) and error.kind is RefusalKind.AUTH


def find_source(
    name: str, section: UpstreamSettings, ladder: KeyLadder
) -> tuple[str, str]:
    """Return where a key of an upstream is, and why there is none. May block."""
    trouble = "no key was found"
    for wanted in keys_wanted(name, section):
        try:
            return ladder.find(wanted).source, ""
        except KeyMissing:
            continue
        except ConfigError as error:
            trouble = str(error)
    return "", trouble


def _find_keys(
    hosted: Mapping[str, UpstreamSettings], ladder: KeyLadder
) -> list[Candidate]:
    """Return the vendors that have a key; those chosen only by name come last."""
    found = []
    for name, section in hosted.items():
        try:
            source = ladder.find(key_wanted(name, section)).source
        except KeyMissing:
            continue
        except ConfigError as error:
            source, trouble = "", str(error)
        else:
            trouble = ""
        found.append(
            Candidate(
                name,
                section,
                base_url_of(section),
                FoundBy.KEY,
                key_source=source,
                trouble=trouble,
                is_offered=not PRESETS[name].only_by_name,
            )
        )
    return sorted(found, key=lambda one: not one.is_offered)
