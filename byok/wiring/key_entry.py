"""Store and remove the key of one name: an upstream, a preset, or the official service.

A key is stored for the origin that the settings name, and is of no use with another.
"""

from byok.config import Settings, upstream_named
from byok.errors import ConfigError
from byok.keys import KeyWanted
from byok.routing import OFFICIAL
from byok.wiring.key_sources import find_key, official_wanted, team_keys_wanted


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
    for wanted in team_keys_wanted(settings):
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
