"""The feature that offers web tools, and shows their status."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from byok.features.base import Feature, Site, Supplies
from byok.features.status import Meter, StatusLine, StatusRow
from byok.features.web.calls import WebCalls
from byok.features.web.page import NO_EXTRACTOR, can_read
from byok.features.web.settings import WebSettings

if TYPE_CHECKING:
    from byok.upstream.own_tools import OwnTool


class WebTools(Feature):
    """Offers models web tools while the settings name a provider."""

    def __init__(self, site: Site) -> None:
        """Set up without tools; the first call of a model loads them."""
        super().__init__(site)
        self._calls = WebCalls(site.clock, site.redactor)
        self._settings = WebSettings()
        self._tools: tuple[OwnTool, ...] = ()

    def configure(self, supplies: Supplies, /) -> None:
        """Use these settings from now on."""
        self._settings = supplies.settings.section(WebSettings)
        self._calls.most = self._settings.per_day
        self._tools = ()
        if self._settings.on:
            from byok.features.web.tools import make_tools

            self._tools = make_tools(self._calls, supplies)

    @property
    def own_tools(self) -> "Sequence[OwnTool]":
        """The tools, none while they are off."""
        return self._tools

    async def status(self) -> Sequence[StatusRow] | None:
        """Return the use of today, and what is wrong."""
        if not self._settings.on:
            return None
        provider, used = self._settings.search.value, self._calls.used
        rows: list[StatusRow] = [
            StatusLine(
                f"by {provider}, {used:,} searches and pages today",
                "web.used",
                {"who": provider, "count": used},
            )
        ]
        if limit := self._settings.per_day:
            rows.append(Meter("web_per_day", used, limit))
        if self._settings.fetch and not can_read():
            rows.append(StatusLine(NO_EXTRACTOR, "web.no_extractor", warns=True))
        if failure := self._calls.failure:
            text = f"the last call failed: {failure}"
            rows.append(StatusLine(text, "web.last", {"failure": failure}, warns=True))
        return rows
