"""The web tools: their definitions for models, and their calls."""

from msgspec import Struct

from byok.core.chat import Json, ToolDefinition
from byok.core.events import Citation
from byok.features.base import Supplies
from byok.features.web.calls import WebCalls, WebFailure
from byok.features.web.fetch import fetch_page
from byok.features.web.page import can_read, write_page
from byok.features.web.search import ask_provider, write_hits
from byok.features.web.settings import WebSettings
from byok.settings.keys.ladder import WEB_SEARCH, AnyKey
from byok.settings.sections import NetworkSettings
from byok.upstream.own_tools import OwnResult, OwnTool
from byok.upstream.transport import Route

_SEARCH = ToolDefinition(
    WEB_SEARCH,
    "Search the web. Returns up to ten results, each with title, address and snippet. "
    "Use it for what may have changed since your training: versions, APIs, error "
    "messages, news. In your answer, cite the addresses that you rely on.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to search for, in words."}
        },
        "required": ["query"],
    },
)
_FETCH = ToolDefinition(
    "web-fetch",
    "Read a public page of the web as Markdown, at most 40 kB of it. In your answer, "
    "cite the address if you rely on it.",
    {
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "The http or https address."}
        },
        "required": ["url"],
    },
)


def make_tools(calls: WebCalls, supplies: Supplies) -> tuple[OwnTool, ...]:
    """Return the tools for settings that name a provider."""
    settings = supplies.settings.section(WebSettings)
    network = supplies.settings.network
    search = _WebSearch(calls, settings, supplies.keys.get(WEB_SEARCH), network)
    if not (settings.fetch and can_read()):
        return (search,)
    return (search, _WebFetch(calls, Route(network.proxy, network.ca_file)))


class _WebSearch(Struct, frozen=True):
    """web-search."""

    calls: WebCalls
    settings: WebSettings
    key: AnyKey | None
    network: NetworkSettings
    definition: ToolDefinition = _SEARCH

    async def run(self, arguments: Json, /) -> OwnResult:
        """Search, and return the results as a list."""
        words = arguments.get("query")
        words = words if isinstance(words, str) else ""
        try:
            words = self.calls.begin(words)
            hits = await ask_provider(words, self.settings, self.key, self.network)
        except WebFailure as error:
            line = self.calls.end(f"Searched the web: {words}", error)
            return OwnResult(f"ERROR: {error}.", line, is_error=True)
        line = self.calls.end(f"Searched the web: {words}")
        sources = tuple(Citation(hit.url, hit.title) for hit in hits)
        return OwnResult(write_hits(words, hits), line, sources)


class _WebFetch(Struct, frozen=True):
    """web-fetch."""

    calls: WebCalls
    route: Route
    definition: ToolDefinition = _FETCH

    async def run(self, arguments: Json, /) -> OwnResult:
        """Read a page."""
        url = arguments.get("url")
        url = url.strip() if isinstance(url, str) else ""
        try:
            if self.calls.begin(url) != url:
                raise WebFailure("not read: the address holds a secret")
            page = await fetch_page(url, self.route)
            text = await write_page(page)
        except WebFailure as error:
            line = self.calls.end(f"Read {url}", error)
            return OwnResult(f"ERROR: {error}.", line, is_error=True)
        line = self.calls.end(f"Read {page.url}")
        return OwnResult(text, line, (Citation(page.url),), is_read=True)
