"""Build the client of the search server in the settings."""

from functools import partial
from typing import TYPE_CHECKING

from byok.core.platform.paths import Paths
from byok.core.urls import host_of, is_loopback
from byok.search.outside.consent import Consent
from byok.search.outside.server import Pause
from byok.search.remote.remote_search import RemotePlace, RemoteSearch
from byok.search.remote.zoekt import ZoektServer
from byok.settings import Settings
from byok.upstream.transport import Route
from byok.wiring.key_sources import search_key_lookup

if TYPE_CHECKING:
    from byok.wiring.upstreams import Shared


def remote_place(settings: Settings) -> RemotePlace:
    """Return the address of the search server in the settings."""
    url = settings.search.remote.url
    return RemotePlace(url, host_of(url), is_loopback(url))


def make_remote_search(
    settings: Settings, paths: Paths, shared: "Shared"
) -> RemoteSearch:
    """Return a client of the search server; it sends nothing yet."""
    remote, place = settings.search.remote, remote_place(settings)
    proxy = "" if place.is_local else remote.proxy
    route = Route(proxy, remote.ca_file or settings.network.ca_file)
    token = shared.make_key(search_key_lookup(settings))
    server = ZoektServer(
        remote.url,
        partial(shared.transports.by, route),
        token,
        scheme=remote.token_scheme,
        headers=remote.headers,
    )
    consent = partial(Consent, paths.search_consent)
    pause = Pause(f"the search server {place.host}")
    return RemoteSearch(place, server.search, consent, shared.redactor, pause)
