"""The keys that the settings need, how each is looked up, and the source of each.

A `KeyLookup` describes a lookup: by which names, and for which origin, the sources are
searched. A key in a store belongs to one origin, and is not used with another.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from byok.core.errors import ConfigError, KeyMissing
from byok.core.platform.paths import Paths
from byok.core.redact import Redactor
from byok.core.routing import OFFICIAL
from byok.core.urls import is_loopback
from byok.dialects.presets import PRESETS
from byok.features.web.settings import WebSettings
from byok.settings import Settings, UpstreamSettings, upstream_named
from byok.settings.keys import KeyLadder, KeyLookup, fingerprint
from byok.settings.keys.ladder import (
    SEARCH_SERVER,
    TEAM_INDEX,
    TEAM_SALT,
    WEB_SEARCH,
    AnyKey,
    KeyPool,
    UpstreamKey,
)
from byok.settings.keys.vault import Vault
from byok.settings.loading import SENT
from byok.settings.section import SettingFault
from byok.wiring.apis import base_url_of

_HOSTED = [name for name, preset in PRESETS.items() if preset.key_env]
_URL = "base_url"


def key_lookup(name: str, settings: UpstreamSettings) -> KeyLookup:
    """Return the lookup of an upstream's only key.

    The vendor's environment variable is used for the vendor's own address only.
    """
    preset = PRESETS.get(settings.type)
    base_url = base_url_of(settings)
    return KeyLookup(
        name,
        base_url,
        preset_env=preset.key_env if preset and preset.is_at(base_url) else "",
        named_env=settings.api_key_env,
        command=tuple(settings.api_key_cmd),
    )


def key_lookups(name: str, settings: UpstreamSettings) -> tuple[KeyLookup, ...]:
    """Return the lookup of each key of an upstream; usually there is one."""
    if not settings.key_names:
        return (key_lookup(name, settings),)
    return tuple(_named_key(name, settings, key) for key in settings.key_names)


def _named_key(name: str, settings: UpstreamSettings, key: str) -> KeyLookup:
    label = key.removeprefix("env:")
    variable = label if label != key else ""
    return KeyLookup(name, base_url_of(settings), named_env=variable, label=label)


def find_key(name: str, label: str, settings: UpstreamSettings) -> KeyLookup:
    """Return the lookup of one key of an upstream; the label "" is for its only key.

    Raises:
        ConfigError: the settings name no such key.
    """
    lookups = key_lookups(name, settings)
    if lookup := next((key for key in lookups if key.label == label), None):
        return lookup
    if not settings.key_names:
        raise ConfigError(
            f"The settings name no key {label!r} of {name}.",
            hint=f"Add it to key_names under [upstreams.{name}] first.",
        )
    titles = ", ".join(key.title for key in lookups)
    raise ConfigError(
        f"{name} has several keys, and none is meant by this.",
        hint=f"Use one of these: {titles}.",
    )


def official_key_lookup(settings: Settings) -> KeyLookup:
    """Return the lookup of the token for the official service."""
    return KeyLookup(OFFICIAL, settings.routing.official.base_url)


def team_key_lookups(settings: Settings) -> tuple[KeyLookup, KeyLookup]:
    """Return the lookups of the key for the team's server and of the team's salt.

    The salt, too, is stored for one server: it is useless with another.
    """
    url = settings.embeddings.team.url
    return KeyLookup(TEAM_INDEX, url), KeyLookup(TEAM_INDEX, url, label=TEAM_SALT)


def search_key_lookup(settings: Settings) -> KeyLookup:
    """Return the lookup of the token for the search server."""
    return KeyLookup(SEARCH_SERVER, settings.search.remote.url)


def web_key_lookup(settings: Settings) -> KeyLookup:
    """Return the lookup of the key for web search; without address if it needs none."""
    web = settings.section(WebSettings)
    if not web.on or not web.provider.key_env:
        return KeyLookup(WEB_SEARCH, "")
    preset_env = "" if web.url else web.provider.key_env
    return KeyLookup(WEB_SEARCH, web.base_url, preset_env=preset_env)


def service_key_lookups(settings: Settings) -> tuple[KeyLookup, ...]:
    """Return the lookups of the keys for services other than upstreams."""
    others = (search_key_lookup(settings), web_key_lookup(settings))
    return (*team_key_lookups(settings), *others)


def make_ladder(paths: Paths, environ: Mapping[str, str] = os.environ) -> KeyLadder:
    """Return the key sources of this user, in the order in which they are searched."""
    vault = Vault(paths.vault, environ, key_file=paths.vault_key)
    return KeyLadder(environ=environ, vault=vault)


def make_key(ladder: KeyLadder, redactor: Redactor, *lookups: KeyLookup) -> AnyKey:
    """Return one key, or a pool of several; each is looked up at its first use."""

    def make(lookup: KeyLookup) -> UpstreamKey:
        local = lookup.name != OFFICIAL and is_loopback(lookup.base_url)
        return UpstreamKey(ladder, lookup, redactor, local=local)

    keys = [*map(make, lookups)]
    return keys[0] if len(keys) == 1 else KeyPool(keys)


def list_keys(
    settings: Settings, upstreams: Mapping[str, UpstreamSettings], ladder: KeyLadder
) -> dict[str, Any]:
    """Look up the keys of these upstreams, and of hosted presets that have one.

    Returns `{"keys": [{"upstream", "source", "fingerprint", "error", "local", "cure"}],
    "unread": [str]}`. A `local` upstream, on this machine, rarely needs a key. The
    command `cure` stores the key. If a key is missing or cannot be used, its source is
    "none"; `error` says why it cannot be used, or is "". An upstream with several keys
    has a row for each, called `UPSTREAM/NAME`. `unread` are the stores that could not
    be read. May block for seconds, because a keyring may ask the user.
    """
    rows: list[dict[str, str | bool]] = []
    unread: dict[str, None] = {}  # each once, in order
    for lookup in all_key_lookups(settings, upstreams):
        row: dict[str, str | bool]
        row = {"upstream": lookup.title, "source": "none", "fingerprint": ""}
        row |= {"error": "", "local": is_loopback(lookup.base_url)}
        row["cure"] = f"byok keys set {lookup.command_name}"
        try:
            key = ladder.find(lookup)
            row |= {"source": key.source, "fingerprint": fingerprint(key.value)}
        except KeyMissing as error:
            unread |= dict.fromkeys(error.unread)
            if lookup.name in _HOSTED and lookup.name not in upstreams:
                continue
        except ConfigError as error:
            row["error"] = error.sentence
        rows.append(row)
    return {"keys": rows, "unread": list(unread)}


def all_key_lookups(
    settings: Settings, upstreams: Mapping[str, UpstreamSettings]
) -> Iterator[KeyLookup]:
    """Yield the lookups of all keys, except of the demo, which has no address."""
    official = official_key_lookup(settings)
    presets = {
        name: UpstreamSettings(type=name) for name in _HOSTED if name not in upstreams
    }
    lookups = [
        key for name, section in upstreams.items() for key in key_lookups(name, section)
    ]
    lookups += [official, *service_key_lookups(settings)]
    lookups += [key_lookup(name, section) for name, section in presets.items()]
    yield from (lookup for lookup in lookups if lookup.base_url)


def key_named(name: str, settings: Settings) -> KeyLookup:
    """Return the lookup of the key with a name, such as `openai/work`.

    The name is that of an upstream, a preset or a service.

    Raises:
        ConfigError: there is no such upstream or key, or the upstream needs no key.
    """
    if name == OFFICIAL:
        lookup = official_key_lookup(settings)
        if not lookup.base_url:
            raise ConfigError(
                "The address of the official service is not set.",
                hint="Set base_url under [routing.official] first.",
            )
        return lookup
    for lookup in service_key_lookups(settings):
        if lookup.base_url and lookup.title == name:
            return lookup
    label = ""
    if "://" not in name:
        name, _, label = name.partition("/")
    upstream, section = upstream_named(name, settings)
    lookup = find_key(upstream, label, section)
    if not lookup.base_url:
        raise ConfigError(f"{name} needs no key.")
    return lookup


def find_moved_secrets(
    former_settings: tuple[Settings, ...], new_settings: Settings, ladder: KeyLadder
) -> list[SettingFault]:
    """Return a fault for each new address that would be sent a secret.

    An address is new if none of the former settings has it. A key in a store is not
    used with a new address. But headers, queries, fields of bodies, and keys from a
    command or a variable are sent wherever the upstream is. So whoever can change
    addresses on the page could have them sent to another host.
    """
    faults = list[SettingFault]()
    for name, section in new_settings.upstreams.items():
        lookups = key_lookups(name, section)
        origins = {
            origin
            for former in former_settings
            for origin in _origins(name, former.upstreams)
        }
        if lookups[0].base_url and lookups[0].origin not in origins:
            common = (
                f"chat.{name}" for name in SENT if getattr(new_settings.chat, name, 0)
            )
            fields = (name for name in SENT if getattr(section, name))
            carriers = (*common, *fields, *_sources(ladder, lookups))
            faults += _faults(("upstreams", name, _URL), carriers)
    headers = ("headers",) if new_settings.search.remote.headers else ()
    for path, find_lookup, setting_names in (
        (("routing", OFFICIAL, _URL), official_key_lookup, ()),
        (("search", "remote", "url"), search_key_lookup, headers),
        (("web", "url"), web_key_lookup, ()),
    ):
        service = find_lookup(new_settings)
        former_origins = {find_lookup(former).origin for former in former_settings}
        if service.base_url and service.origin not in former_origins:
            faults += _faults(path, (*setting_names, *_sources(ladder, (service,))))
    return faults


def _origins(name: str, upstreams: Mapping[str, UpstreamSettings]) -> set[str]:
    """Return the origin of an upstream, or of the preset with its name."""
    section = upstreams.get(name)
    if section is None and name in PRESETS:
        section = UpstreamSettings(type=name)
    return {key_lookups(name, section)[0].origin} if section else set()


def _sources(ladder: KeyLadder, lookups: tuple[KeyLookup, ...]) -> Iterator[str]:
    """Yield the sources that have a key for any address."""
    return (source for lookup in lookups if (source := ladder.loose_source(lookup)))


def _faults(path: tuple[str, ...], carriers: tuple[str, ...]) -> list[SettingFault]:
    if not carriers:
        return []
    names = ", ".join(dict.fromkeys(carriers))
    return [
        SettingFault(
            path,
            f"must be changed in the file: what {names} holds would go to this address",
        )
    ]
