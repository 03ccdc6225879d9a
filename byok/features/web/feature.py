"""Web tools: a feature that offers them, and shows how they stand."""

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
    """Gives models their web tools while the settings name who searches."""

    def __init__(self, site: Site) -> None:
        """Keep nothing but a count; nothing is loaded or asked before a model calls."""
        super().__init__(site)
        self._calls = WebCalls(site.clock, site.redactor)
        self._settings = WebSettings()
        self._tools: tuple[OwnTool, ...] = ()

    def configure(self, supplies: Supplies, /) -> None:
        """Use these settings from now on."""
        own = self._settings = supplies.settings.section(WebSettings)
        self._calls.most = own.per_day
        self._tools = ()
        if own.on:
            from byok.features.web.tools import make_tools

            self._tools = make_tools(self._calls, supplies)

    @property
    def own_tools(self) -> "Sequence[OwnTool]":
        """The tools, none while they are off."""
        return self._tools

    async def status(self) -> Sequence[StatusRow] | None:
        """Show what today has used, and what is not as it should be."""
        if not self._settings.on:
            return None
        who, used = self._settings.search.value, self._calls.used
        rows: list[StatusRow] = [
            StatusLine(
                f"by {who}, {used:,} searches and pages today",
                "web.used",
                {"who": who, "count": used},
            )
        ]
        if most := self._settings.per_day:
            rows.append(Meter("web_per_day", used, most))
        if self._settings.fetch and not can_read():
            rows.append(StatusLine(NO_EXTRACTOR, "web.no_extractor", warns=True))
        if failure := self._calls.failure:
            text = f"the last call failed: {failure}"
            rows.append(StatusLine(text, "web.last", {"failure": failure}, warns=True))
        return rows
