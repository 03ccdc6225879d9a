"""Which upstreams are checked: those of the settings, and the daemon's."""

from collections.abc import Mapping

from byok.chat import Json
from byok.config import Settings, UpstreamSettings, upstream_named
from byok.dialects.presets import DEMO, PRESETS
from byok.errors import ConfigError
from byok.upstream.discover import find_answering
from byok.upstream.transport import Transports
from byok.wiring.apis import apis_of, base_url_of


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
    local = {
        n: UpstreamSettings(type=n) for n, preset in PRESETS.items() if preset.local
    }
    transports = Transports()
    try:
        apis = {name: apis_of(section)[0] for name, section in local.items()}
        names = await find_answering(transports, apis)
    finally:
        await transports.close()
    return {name: local[name] for name in names[:1]}
