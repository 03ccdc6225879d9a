"""What the page may ask for, by name: POST /ui/api/NAME with an object."""

from collections.abc import Awaitable, Callable, Mapping

from byok.chat import Json
from byok.features.running import Features
from byok.routing import Service
from byok.server.control import Control
from byok.server.dashboard.endpoint import PageHandler, PageRequest
from byok.server.dashboard.feed_api import make_feed_handlers
from byok.server.dashboard.journal_api import make_journal_handlers
from byok.server.dashboard.overview_api import (
    make_index_handlers,
    make_key_handlers,
    make_overview_handlers,
)
from byok.server.dashboard.settings_api import make_settings_handlers
from byok.server.dashboard.usage_api import make_usage_handlers
from byok.server.endpoints import LocalHandler
from byok.wiring.services import Services

# Names of what commands ask for too.
_SHARED = {
    "daemon": Service.DAEMON,
    "official": Service.OFFICIAL,
    "key-test": Service.KEY_TEST,
    "index": Service.INDEX_STATUS,
    "index-add": Service.INDEX_ADD,
    "index-remove": Service.INDEX_REMOVE,
    "index-rebuild": Service.INDEX_REBUILD,
    "index-why": Service.INDEX_WHY,
    "index-vectors": Service.EMBED_STATUS,
}


def make_page_handlers(
    local: Mapping[str, LocalHandler],
    services: Services,
    control: Control,
    features: Features,
    clock: Callable[[], float],
) -> Mapping[str, PageHandler]:
    """Return what answers each name; `local` is what answers commands.

    `clock` gives seconds since 1970.
    """
    shared = {name: _share(local[service]) for name, service in _SHARED.items()}
    return {
        **shared,
        **make_journal_handlers(services, clock),
        **make_feed_handlers(features.feeds),
        **make_overview_handlers(local, services, control),
        **make_index_handlers(services.context),
        **make_settings_handlers(services, control),
        **make_key_handlers(services, control),
        **make_usage_handlers(services, clock),
    }


def _share(handler: LocalHandler) -> Callable[[PageRequest], Awaitable[Json]]:
    return lambda asked: handler(asked.body)
