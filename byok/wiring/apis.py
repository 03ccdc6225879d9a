"""Where an upstream's APIs are: the user's own base URL, else those of the preset."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from byok.core.urls import is_loopback
from byok.dialects.base import DIALECTS
from byok.dialects.presets import (
    DEFAULT_PATHS,
    PRESETS,
    path_ends_with,
    preset_of,
    vendor_of,
)
from byok.settings import UpstreamSettings
from byok.upstream.spec import Api


def base_url_of(settings: UpstreamSettings) -> str:
    """Return the base URL of the API that is used first, "" for the demo."""
    return next(iter(addresses_of(settings).values()))


def addresses_of(settings: UpstreamSettings) -> dict[str, str]:
    """Return the base URLs of an upstream by dialect; the first is used.

    A base URL of the user's own may be that of any of the vendor's APIs: where its path
    ends as theirs does, the others are beside it. One without a path gets the usual
    path of each dialect.
    """
    preset = preset_of(settings.type)
    used = settings.dialect or preset.dialect
    addresses, own = _vendors_addresses(settings, used), settings.base_url
    if not own:
        others = {name: url for name, url in addresses.items() if url}
        return {used: addresses.get(used, "")} | others
    paths = {n: _path(n, url) for n, url in addresses.items() if n != used}
    paths = {used: _path(used, addresses.get(used, ""))} | paths
    if used not in addresses:
        paths = {used: paths[used]}
    if not urlsplit(own).path:
        return {name: own + path for name, path in paths.items()}
    ends = [path for path in paths.values() if path_ends_with(own, path)]
    if not ends or used not in addresses:
        return {name: own for name, path in paths.items() if path == paths[used]}
    root = own.removesuffix(max(ends, key=len))
    return {name: root + path for name, path in paths.items()}


def _vendors_addresses(settings: UpstreamSettings, used: str) -> Mapping[str, str]:
    """Return the addresses of a preset, without APIs that the vendor does not have.

    A base URL alone may belong to a vendor whose preset says which APIs it has.
    """
    addresses = preset_of(settings.type).addresses
    vendor = PRESETS.get(vendor_of(settings.type, settings.base_url))
    if vendor is None or settings.type in PRESETS:
        return addresses
    return {
        name: url
        for name, url in addresses.items()
        if name == used or name in vendor.addresses
    }


def _path(dialect: str, url: str) -> str:
    """Return the path of a preset's address; that of the dialect without one."""
    return urlsplit(url).path if url else DEFAULT_PATHS.get(dialect, "")


def apis_of(settings: UpstreamSettings) -> tuple[Api, ...]:
    """Return the APIs of an upstream as its vendor has them; the first is used."""
    addresses = addresses_of(settings)
    vendor = vendor_of(settings.type, base_url_of(settings))
    return tuple(Api(DIALECTS[name](vendor), url) for name, url in addresses.items())


def local_upstreams(sections: Mapping[str, UpstreamSettings]) -> frozenset[str]:
    """Return the names of the upstreams on this machine; the demo is one."""
    urls = {name: base_url_of(section) for name, section in sections.items()}
    return frozenset(name for name, url in urls.items() if not url or is_loopback(url))
