"""Where an upstream's APIs are: the user's own base URL, else those of the preset."""

from urllib.parse import urlsplit

from byok.config import UpstreamSettings
from byok.dialects.presets import DEFAULT_PATHS, preset_of, vendor_of
from byok.dialects.registry import DIALECTS
from byok.upstream.spec import Api


def base_url_of(settings: UpstreamSettings) -> str:
    """Return the base URL of the API that is used first, "" for the demo."""
    return next(iter(addresses_of(settings).values()))


def addresses_of(settings: UpstreamSettings) -> dict[str, str]:
    """Return the base URLs of an upstream by dialect; the first is used.

    With a base URL of the user's own the others are those which the vendor serves at
    the same address. One without a path gets the usual path of the dialect.
    """
    preset = preset_of(settings.type)
    used = settings.dialect or preset.dialect
    usual, own = preset.addresses.get(used, ""), settings.base_url
    if own and not urlsplit(own).path:
        own += DEFAULT_PATHS.get(used, "")
    others = {
        dialect: own or url
        for dialect, url in preset.addresses.items()
        if url and (not own or url == usual)
    }
    return {used: own or usual} | others


def apis_of(settings: UpstreamSettings) -> tuple[Api, ...]:
    """Return the APIs of an upstream as its vendor has them; the first is used."""
    addresses = addresses_of(settings)
    vendor = vendor_of(settings.type, base_url_of(settings))
    return tuple(Api(DIALECTS[name](vendor), url) for name, url in addresses.items())
