"""Which keys there are to look for, and which source has each, as users are told."""

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
from byok.settings.keys import KeyLadder, KeyWanted, fingerprint
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


def key_wanted(name: str, settings: UpstreamSettings) -> KeyWanted:
    """Return what a key for an upstream is looked up by.

    The vendor's own variable counts for the vendor's own address only.
    """
    preset = PRESETS.get(settings.type)
    base_url = base_url_of(settings)
    return KeyWanted(
        name,
        base_url,
        preset_env=preset.key_env if preset and preset.is_at(base_url) else "",
        named_env=settings.api_key_env,
        command=tuple(settings.api_key_cmd),
    )


def keys_wanted(name: str, settings: UpstreamSettings) -> tuple[KeyWanted, ...]:
    """Return what each key for an upstream is looked up by; usually it has one."""
    if not settings.key_names:
        return (key_wanted(name, settings),)
    return tuple(_named_key(name, settings, key) for key in settings.key_names)


def _named_key(name: str, settings: UpstreamSettings, key: str) -> KeyWanted:
    label = key.removeprefix("env:")
    variable = label if label != key else ""
    return KeyWanted(name, base_url_of(settings), named_env=variable, label=label)


def find_key(name: str, label: str, settings: UpstreamSettings) -> KeyWanted:
    """Return what one key of an upstream is looked up by; "" is its only key.

    Raises:
        ConfigError: the settings name no such key.
    """
    wanted = keys_wanted(name, settings)
    if found := next((one for one in wanted if one.label == label), None):
        return found
    if not settings.key_names:
        raise ConfigError(
            f"The settings name no key {label!r} of {name}.",
            hint=f"Add it to key_names under [upstreams.{name}] first.",
        )
    known = ", ".join(one.title for one in wanted)
    raise ConfigError(
        f"{name} has several keys, and none is meant by this.",
        hint=f"Use one of these: {known}.",
    )


def official_wanted(settings: Settings) -> KeyWanted:
    """Return what the token of the official service is looked up by."""
    return KeyWanted(OFFICIAL, settings.routing.official.base_url)


def team_keys_wanted(settings: Settings) -> tuple[KeyWanted, KeyWanted]:
    """Return what the key of the team's server, and the team's salt, are looked up by.

    The salt is stored for one server, too: it is of no use with another.
    """
    url = settings.embeddings.team.url
    return KeyWanted(TEAM_INDEX, url), KeyWanted(TEAM_INDEX, url, label=TEAM_SALT)


def search_key_wanted(settings: Settings) -> KeyWanted:
    """Return what the token of the search server is looked up by."""
    return KeyWanted(SEARCH_SERVER, settings.search.remote.url)


def web_key_wanted(settings: Settings) -> KeyWanted:
    """Return what the key of the web's search is looked up by, if it needs one."""
    web = settings.section(WebSettings)
    if not web.on or not web.provider.key_env:
        return KeyWanted(WEB_SEARCH, "")
    preset_env = "" if web.url else web.provider.key_env
    return KeyWanted(WEB_SEARCH, web.base_url, preset_env=preset_env)


def service_keys_wanted(settings: Settings) -> tuple[KeyWanted, ...]:
    """Return what the keys of services beside the upstreams are looked up by."""
    others = (search_key_wanted(settings), web_key_wanted(settings))
    return (*team_keys_wanted(settings), *others)


def make_ladder(paths: Paths, environ: Mapping[str, str] = os.environ) -> KeyLadder:
    """Return the key sources of this user, in the order in which they are searched."""
    vault = Vault(paths.vault, environ, key_file=paths.vault_key)
    return KeyLadder(environ=environ, vault=vault)


def make_key(ladder: KeyLadder, redactor: Redactor, *wanted: KeyWanted) -> AnyKey:
    """Return a key, or several, each looked up when it is needed first."""

    def make(one: KeyWanted) -> UpstreamKey:
        local = one.name != OFFICIAL and is_loopback(one.base_url)
        return UpstreamKey(ladder, one, redactor, local=local)

    made = [*map(make, wanted)]
    return made[0] if len(made) == 1 else KeyPool(made)


def list_keys(
    settings: Settings, upstreams: Mapping[str, UpstreamSettings], ladder: KeyLadder
) -> dict[str, Any]:
    """Look up the keys of these upstreams, and of hosted presets that have one.

    Returns `{"keys": [{"upstream", "source", "fingerprint", "error", "local", "cure"}],
    "unread": [str]}`; what is `local`, on this machine, rarely needs a key. The command
    `cure` stores one. The source
    of a key that is missing or cannot be used is "none", and `error` says what is wrong
    with it, "" if nothing. An upstream with several keys has a row for each, called
    `UPSTREAM/NAME`. `unread` are stores that could not be read. May block for seconds,
    because a keyring may ask the user.
    """
    rows: list[dict[str, str | bool]] = []
    unread: dict[str, None] = {}  # each once, in order
    for wanted in all_wanted(settings, upstreams):
        row: dict[str, str | bool]
        row = {"upstream": wanted.title, "source": "none", "fingerprint": ""}
        row |= {"error": "", "local": is_loopback(wanted.base_url)}
        row["cure"] = f"byok keys set {wanted.command_name}"
        try:
            found = ladder.find(wanted)
            row |= {"source": found.source, "fingerprint": fingerprint(found.value)}
        except KeyMissing as error:
            unread |= dict.fromkeys(error.unread)
            if wanted.name in _HOSTED and wanted.name not in upstreams:
                continue
        except ConfigError as error:
            row["error"] = error.sentence
        rows.append(row)
    return {"keys": rows, "unread": list(unread)}


def all_wanted(
    settings: Settings, upstreams: Mapping[str, UpstreamSettings]
) -> Iterator[KeyWanted]:
    """Give whose keys are listed: each that has an address, so not the demo."""
    official = official_wanted(settings)
    presets = {
        name: UpstreamSettings(type=name) for name in _HOSTED if name not in upstreams
    }
    wanted = [
        one for name, section in upstreams.items() for one in keys_wanted(name, section)
    ]
    wanted += [official, *service_keys_wanted(settings)]
    wanted += [key_wanted(name, section) for name, section in presets.items()]
    yield from (one for one in wanted if one.base_url)


# Store and remove the key of one name: an upstream, a preset, or the official service.
#
# A key is stored for the origin that the settings name, and is of no use with another.


def key_named(name: str, settings: Settings) -> KeyWanted:
    """Return what the key is stored by that a name means, such as `openai/work`.

    Raises:
        ConfigError: there is no such upstream or key, or it needs none.
    """
    if name == OFFICIAL:
        wanted = official_wanted(settings)
        if not wanted.base_url:
            raise ConfigError(
                "The address of the official service is not set.",
                hint="Set base_url under [routing.official] first.",
            )
        return wanted
    for wanted in service_keys_wanted(settings):
        if wanted.base_url and wanted.title == name:
            return wanted
    label = ""
    if "://" not in name:
        name, _, label = name.partition("/")
    upstream, section = upstream_named(name, settings)
    wanted = find_key(upstream, label, section)
    if not wanted.base_url:
        raise ConfigError(f"{name} needs no key.")
    return wanted


# Find what settings send that is bound to no address, where an address is new.
#
# A key of a store is of no use with another address. But headers, a query, fields of
# bodies and a key by a command or a variable go wherever the upstream is. So who can
# change addresses on a page could have them sent to another host.


_URL = "base_url"


def moved_secrets(
    former: tuple[Settings, ...], after: Settings, ladder: KeyLadder
) -> list[SettingFault]:
    """Return a fault for each address that none of the `former` settings names.

    Only those count to which something would be sent that the file or the environment
    of this process gives.
    """
    found = list[SettingFault]()
    for name, section in after.upstreams.items():
        wanted = keys_wanted(name, section)
        origins = {origin for one in former for origin in _origins(name, one.upstreams)}
        if wanted[0].base_url and wanted[0].origin not in origins:
            common = (f"chat.{name}" for name in SENT if getattr(after.chat, name, 0))
            fields = (name for name in SENT if getattr(section, name))
            what = (*common, *fields, *_sources(ladder, wanted))
            found += _faults(("upstreams", name, _URL), what)
    headers = ("headers",) if after.search.remote.headers else ()
    for path, find_wanted, own in (
        (("routing", OFFICIAL, _URL), official_wanted, ()),
        (("search", "remote", "url"), search_key_wanted, headers),
        (("web", "url"), web_key_wanted, ()),
    ):
        service = find_wanted(after)
        known = {find_wanted(one).origin for one in former}
        if service.base_url and service.origin not in known:
            found += _faults(path, (*own, *_sources(ladder, (service,))))
    return found


def _origins(name: str, upstreams: Mapping[str, UpstreamSettings]) -> set[str]:
    """Return where an upstream was; without a section that is its preset's address."""
    section = upstreams.get(name)
    if section is None and name in PRESETS:
        section = UpstreamSettings(type=name)
    return {keys_wanted(name, section)[0].origin} if section else set()


def _sources(ladder: KeyLadder, wanted: tuple[KeyWanted, ...]) -> Iterator[str]:
    """Give the sources that have a key whatever the address is."""
    return (found for one in wanted if (found := ladder.loose_source(one)))


def _faults(path: tuple[str, ...], what: tuple[str, ...]) -> list[SettingFault]:
    if not what:
        return []
    names = ", ".join(dict.fromkeys(what))
    return [
        SettingFault(
            path,
            f"must be changed in the file: what {names} holds would go to this address",
        )
    ]
