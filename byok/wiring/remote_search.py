"""Build what asks the search server that the settings name."""

from functools import partial
from typing import TYPE_CHECKING

from byok.core.platform.paths import Paths
from byok.core.urls import host_of, is_loopback
from byok.search.outside.consent import Consent
from byok.search.outside.server import Pause
from byok.search.remote.remote_search import RemotePlace, RemoteSearch
from byok.search.remote.server import JsonServer
from byok.search.remote.zoekt import search_zoekt
from byok.settings import Settings
from byok.upstream.transport import Route
from byok.wiring.key_sources import search_key_wanted

if TYPE_CHECKING:
    from byok.wiring.upstreams import Shared


def remote_place(settings: Settings) -> RemotePlace:
    """Return where the search server of the settings is."""
    url = settings.search.remote.url
    return RemotePlace(url, host_of(url), is_loopback(url))


def make_remote_search(
    settings: Settings, paths: Paths, shared: "Shared"
) -> RemoteSearch:
    """Return what asks the server; the transports stay open. Asks nobody."""
    own, place = settings.search.remote, remote_place(settings)
    proxy = "" if place.is_local else own.proxy
    route = Route(proxy, own.ca_file or settings.network.ca_file)
    token = shared.make_key(search_key_wanted(settings))
    server = JsonServer(
        own.url,
        partial(shared.transports.by, route),
        token,
        scheme=own.token_scheme,
        headers=own.headers,
    )
    search = partial(search_zoekt, server)
    consent = partial(Consent, paths.search_consent)
    pause = Pause(f"the search server {place.host}")
    return RemoteSearch(place, search, consent, shared.redactor, pause)
