"""Find what settings send that is bound to no address, where an address is new.

A key of a store is of no use with another address. But headers, a query, fields of
bodies and a key by a command or a variable go wherever the upstream is. So who can
change addresses on a page could have them sent to another host.
"""

from collections.abc import Iterator, Mapping

from byok.config import Settings, UpstreamSettings
from byok.config.faults import SettingFault
from byok.dialects.presets import PRESETS
from byok.keys import KeyLadder, KeyWanted
from byok.routing import OFFICIAL
from byok.wiring.key_sources import keys_wanted, official_wanted

_FIELDS = ("headers", "query", "extra_body")
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
            what = (*_fields(section), *_sources(ladder, wanted))
            found += _faults(("upstreams", name, _URL), what)
    service = official_wanted(after)
    known = {official_wanted(one).origin for one in former}
    if service.base_url and service.origin not in known:
        path = ("routing", OFFICIAL, _URL)
        found += _faults(path, tuple(_sources(ladder, (service,))))
    return found


def _origins(name: str, upstreams: Mapping[str, UpstreamSettings]) -> set[str]:
    """Return where an upstream was; without a section that is its preset's address."""
    section = upstreams.get(name)
    if section is None and name in PRESETS:
        section = UpstreamSettings(type=name)
    return {keys_wanted(name, section)[0].origin} if section else set()


def _fields(section: UpstreamSettings) -> Iterator[str]:
    return (name for name in _FIELDS if getattr(section, name))


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
