"""Select the upstreams: those of the settings, a local server, or one with a key."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from byok.config import Settings, UpstreamSettings, upstream_named
from byok.dialects.presets import DEMO, PRESETS
from byok.errors import ConfigError, KeyMissing
from byok.keys import KeyLadder
from byok.retrieval.masking import is_generated
from byok.upstream.discover import find_answering
from byok.upstream.transport import Transports
from byok.wiring.apis import apis_of
from byok.wiring.key_sources import key_wanted

_log = logging.getLogger(__name__)
_LAST_RESORT = "no local server answers and no key was found; choose with --upstream"
_KEPT = "as before: the settings name none; choose with --upstream"


@dataclass(frozen=True, slots=True)
class UpstreamSelection:
    """The upstreams in order, of which the first is the default, and the reason."""

    upstreams: Mapping[str, UpstreamSettings]
    reason: str


def values_to_hide(settings: Settings, selection: UpstreamSelection) -> Iterable[str]:
    """Give what may be secret of headers, queries and additions to the body.

    Of the additions that is what looks generated and names no model: words such as
    "priority" must stay readable.
    """
    for _, section in settings:
        yield from getattr(section, "headers", {}).values()
    for upstream in selection.upstreams.values():
        yield from (*upstream.headers.values(), *upstream.query.values())
        names = {upstream.model, *upstream.models}
        for text in _texts_in(upstream.extra_body):
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
    upstream.
    """
    if not model:
        return settings.routing.default
    if model.removeprefix("byok:") in settings.routing.aliases:
        return model
    first = next(iter(selection.upstreams))
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
        return UpstreamSelection({name: chosen, **others}, "chosen by --upstream")
    if settings.upstreams:
        return UpstreamSelection(settings.upstreams, "first of the settings")
    if before is not None and before.reason != _LAST_RESORT:
        return replace(before, reason=_KEPT)
    return await _find_any(transports, ladder)


async def _find_any(transports: Transports, ladder: KeyLadder) -> UpstreamSelection:
    """Select one preset: a local server, a vendor with a key, or the demo."""
    local = {
        n: apis_of(UpstreamSettings(type=n))[0] for n, p in PRESETS.items() if p.local
    }
    if found := await find_answering(transports, local):
        name, reason = found[0], f"it answers at {local[found[0]].base_url}"
    elif hit := await asyncio.to_thread(_first_key, ladder):
        name, reason = hit[0], f"its key is in {hit[1]}"
    else:
        name, reason = DEMO, _LAST_RESORT
    return UpstreamSelection({name: UpstreamSettings(type=name)}, reason)


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
