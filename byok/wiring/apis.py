"""The addresses of an upstream's APIs: the user's own base URL, else the preset's."""

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
    """Return the base URL of the API that is preferred, "" for the demo."""
    return next(iter(addresses_of(settings).values()))


def addresses_of(settings: UpstreamSettings) -> dict[str, str]:
    """Return the base URLs of an upstream by dialect; the first is preferred.

    The user's own base URL may be that of any of the vendor's APIs: if its path ends
    like one of theirs, the other APIs have the same root. A base URL without a path
    gets the usual path of each dialect.
    """
    preset = preset_of(settings.type)
    used = settings.dialect or preset.dialect
    addresses, base_url = _vendor_addresses(settings, used), settings.base_url
    if not base_url:
        others = {name: url for name, url in addresses.items() if url}
        return {used: addresses.get(used, "")} | others
    paths = {n: _path_of(n, url) for n, url in addresses.items() if n != used}
    paths = {used: _path_of(used, addresses.get(used, ""))} | paths
    if used not in addresses:
        paths = {used: paths[used]}
    if not urlsplit(base_url).path:
        return {name: base_url + path for name, path in paths.items()}
    matching_paths = [path for path in paths.values() if path_ends_with(base_url, path)]
    if not matching_paths or used not in addresses:
        return {name: base_url for name, path in paths.items() if path == paths[used]}
    root = base_url.removesuffix(max(matching_paths, key=len))
    return {name: root + path for name, path in paths.items()}


def _vendor_addresses(settings: UpstreamSettings, used: str) -> Mapping[str, str]:
    """Return the addresses of a preset, without APIs that the vendor does not have.

    Without a preset in the settings, the base URL may show which vendor it is.
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


def _path_of(dialect: str, url: str) -> str:
    """Return the path of a preset's address, or the usual path of the dialect."""
    return urlsplit(url).path if url else DEFAULT_PATHS.get(dialect, "")


def apis_of(settings: UpstreamSettings) -> tuple[Api, ...]:
    """Return the APIs of an upstream as its vendor has them; the first is preferred."""
    addresses = addresses_of(settings)
    vendor = vendor_of(settings.type, base_url_of(settings))
    return tuple(Api(DIALECTS[name](vendor), url) for name, url in addresses.items())


def local_upstreams(sections: Mapping[str, UpstreamSettings]) -> frozenset[str]:
    """Return the names of the upstreams on this machine, which include the demo."""
    urls = {name: base_url_of(section) for name, section in sections.items()}
    return frozenset(name for name, url in urls.items() if not url or is_loopback(url))
