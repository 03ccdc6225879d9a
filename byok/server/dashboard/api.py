"""What the page may ask for, by name: POST /ui/api/NAME with an object."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

from aiohttp.web import StreamResponse

from byok.core.routing import Service
from byok.core.wire.json_lines import encode_line
from byok.features.feed import Feed, FeedEnd, FeedReader
from byok.features.running import Features
from byok.server.control import Control
from byok.server.dashboard.endpoint import (
    PAGE_HEADERS,
    PageHandler,
    PageRequest,
    by_body,
)
from byok.server.dashboard.journal_api import make_journal_handlers
from byok.server.dashboard.overview_api import (
    make_index_handlers,
    make_key_handlers,
    make_overview_handlers,
)
from byok.server.dashboard.settings_page import make_settings_handlers
from byok.server.endpoints import LocalHandler
from byok.server.http.stream import LINES, OpenStream
from byok.wiring.services import Services

# What the page reads as it changes: a stream of lines, one batch a line.
#
# The first line has all that is known, later ones what changed. One line without
# changes comes when nothing happened for a while, and the last one says why there are
# no more. The stream has no place of the gate, so it takes none from a client and is
# not waited for when the daemon stops.


_BEAT = 15.0  # seconds of silence before a line without changes
_PATIENCE = 30.0  # seconds with a page that does not read
_LAST_WORDS = 0.3  # seconds for the last line, for one that does not read
_HEADERS = {**LINES, "Cache-Control": "no-store", **PAGE_HEADERS}


def make_feed_handlers(feeds: Mapping[str, Feed]) -> Mapping[str, PageHandler]:
    """Return what streams each feed, by the same names."""
    return {name: partial(_stream, feed) for name, feed in feeds.items()}


async def _stream(feed: Feed, asked: PageRequest) -> StreamResponse:
    with feed.open_reader() as reader:
        opened = OpenStream(asked.exchange, _HEADERS, patience=_PATIENCE)
        async with opened:
            await _send(asked, feed, reader, opened)
        return opened.response


async def _send(
    asked: PageRequest, feed: Feed, reader: FeedReader, opened: OpenStream
) -> None:
    """Send lines until the session, the daemon or this stream's turn ends."""
    loop = asyncio.get_running_loop()
    with ExitStack() as left:

        def hang_up_soon() -> None:
            left.callback(loop.call_later(_LAST_WORDS, opened.hang_up).cancel)

        reader.on_end = hang_up_soon
        left.callback(asked.on_end(reader.wake))
        changed = True
        while reader.end is None:
            told = feed.take(reader) if changed else {}
            await opened.write(encode_line(told))
            changed = await reader.wait(_BEAT)
            if not asked.is_open():
                reader.finish(FeedEnd.SESSION)
        await opened.finish(encode_line({"end": str(reader.end)}))


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
    shared = {name: by_body(local[service]) for name, service in _SHARED.items()}
    return {
        **shared,
        **make_journal_handlers(services, clock),
        **make_feed_handlers(features.feeds),
        **make_overview_handlers(local, services, control),
        **make_index_handlers(services.context),
        **make_settings_handlers(services, control),
        **make_key_handlers(services, control),
    }
