"""Which upstreams there are, which comes first, and for whom keys are looked for."""

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from byok.config import Settings, UpstreamSettings, upstream_named
from byok.dialects.presets import DEMO, PRESETS
from byok.errors import ConfigError, KeyMissing
from byok.keys import KeyLadder, KeyWanted, fingerprint
from byok.keys.vault import Vault
from byok.platform.paths import Paths
from byok.routing import OFFICIAL
from byok.upstream.demo import MODEL as DEMO_MODEL
from byok.upstream.discover import answering
from byok.upstream.transport import Transports

_log = logging.getLogger(__name__)
_LAST_RESORT = "no local server answers and no key was found; choose with --upstream"
_KEPT = "as before: the settings name none; choose with --upstream"


@dataclass(frozen=True, slots=True)
class UpstreamSelection:
    """The upstreams in their order, the first answers by default; and why."""

    upstreams: Mapping[str, UpstreamSettings]
    reason: str


def key_wanted(name: str, settings: UpstreamSettings) -> KeyWanted:
    """Say for whom a key is looked for.

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


def official_wanted(settings: Settings) -> KeyWanted:
    """Say for whom the token of the official service is looked for."""
    return KeyWanted(OFFICIAL, settings.routing.official.base_url)


def base_url_of(settings: UpstreamSettings) -> str:
    """Return where an upstream is; "" for the demo."""
    preset = PRESETS.get(settings.type)
    return settings.base_url or (preset.base_url if preset else "")


def make_ladder(paths: Paths, environ: Mapping[str, str] = os.environ) -> KeyLadder:
    """Return the places where this user's keys may be."""
    return KeyLadder(environ=environ, vault=Vault(paths.vault, environ))


def values_to_hide(settings: Settings, choice: UpstreamSelection) -> Iterable[str]:
    """Give what the user's settings send along, and may be a secret."""
    yield from settings.chat.headers.values()
    for section in choice.upstreams.values():
        yield from (*section.headers.values(), *section.query.values())


def models_of(section: UpstreamSettings) -> tuple[tuple[str, ...], str]:
    """Return the models listed by hand, and the upstream's default."""
    if section.type == DEMO:
        return (DEMO_MODEL,), DEMO_MODEL
    return tuple(section.models), section.model


def default_id(choice: UpstreamSelection, settings: Settings, model: str) -> str:
    """`--model` goes to the first upstream unless it is a whole id."""
    if not model:
        return settings.routing.default
    first = next(iter(choice.upstreams))
    return model if model.startswith("byok:") else f"byok:{first}:{model}"


def keys_found(
    settings: Settings, upstreams: Mapping[str, UpstreamSettings], ladder: KeyLadder
) -> dict[str, Any]:
    """Tell where keys come from: of these upstreams, and of vendors that have one.

    `unread` are the stores that could not be looked in. May block for seconds.
    """
    wanted = {name: key_wanted(name, section) for name, section in upstreams.items()}
    if settings.routing.official.base_url:
        wanted[OFFICIAL] = official_wanted(settings)
    hosted = [n for n, p in PRESETS.items() if p.key_env and p.base_url]
    for name in hosted:
        wanted.setdefault(name, key_wanted(name, UpstreamSettings(type=name)))
    rows = []
    unread: list[str] = []
    for name, one in wanted.items():
        if not one.base_url:
            continue  # the demo
        source = key = ""
        try:
            found = ladder.find(one)
            source, key = found.source, fingerprint(found.value)
        except KeyMissing as error:
            unread += error.unread
            if name in hosted and name not in upstreams:
                continue
            source = "none"
        except ConfigError as error:
            source = str(error)
        rows.append({"upstream": name, "source": source, "fingerprint": key})
    return {"keys": rows, "unread": list(dict.fromkeys(unread))}


async def select_upstreams(
    settings: Settings,
    wanted: str,
    transports: Transports,
    ladder: KeyLadder,
    before: UpstreamSelection | None = None,
) -> UpstreamSelection:
    """Decide which upstreams there are, and which comes first.

    Without any choice of the user: those of `before`, so that settings that were
    emptied send no code elsewhere; at first the first local server that answers, else
    an upstream whose key is found, else the demo.
    """
    if wanted:
        name, chosen = upstream_named(wanted, settings)
        others = {n: u for n, u in settings.upstreams.items() if n != name}
        return UpstreamSelection({name: chosen, **others}, "chosen by --upstream")
    if settings.upstreams:
        return UpstreamSelection(settings.upstreams, "first of the settings")
    if before is not None and before.reason != _LAST_RESORT:
        return replace(before, reason=_KEPT)
    local = {n: p.base_url for n, p in PRESETS.items() if p.local}
    if found := await answering(transports, local):
        chosen = UpstreamSettings(type=found[0])
        return UpstreamSelection({found[0]: chosen}, f"it answers at {local[found[0]]}")
    hosted = [n for n, p in PRESETS.items() if not p.local and p.base_url]
    if hit := await asyncio.to_thread(_first_key, ladder, hosted):
        return UpstreamSelection(
            {hit[0]: UpstreamSettings(type=hit[0])}, f"its key is in {hit[1]}"
        )
    return UpstreamSelection({DEMO: UpstreamSettings(type=DEMO)}, _LAST_RESORT)


def _first_key(ladder: KeyLadder, names: Iterable[str]) -> tuple[str, str] | None:
    for name in names:
        wanted = key_wanted(name, UpstreamSettings(type=name))
        try:
            return name, ladder.find(wanted).source
        except KeyMissing:
            continue
        except ConfigError as error:
            _log.warning("%s is left out: %s", name, error)
    return None
