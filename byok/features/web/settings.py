"""The section [web]."""

import ipaddress
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from byok.core.urls import is_loopback
from byok.features.web.providers import PROVIDERS, Provider
from byok.settings import values
from byok.settings.section import SettingsClash, SettingsSection


class SearchProvider(StrEnum):
    """The provider of web searches."""

    OFF = "off"
    SEARXNG = "searxng"
    BRAVE = "brave"
    TAVILY = "tavily"
    EXA = "exa"
    KAGI = "kagi"


class WebSettings(SettingsSection):
    """Tools to search the web and to read pages of it, which byok runs for models."""

    search: SearchProvider = Field(
        SearchProvider.OFF,
        description="Who searches: searxng (a server of your own), brave, tavily, exa "
        "or kagi; off: models get no web tools.",
    )
    url: Annotated[str, AfterValidator(lambda u: values.base_url(u) if u else u)] = (
        Field(
            "",
            description="Address of the SearXNG server; for the others, one to ask "
            "instead of their own.",
        )
    )
    fetch: bool = Field(True, description="Models may read pages of the web, too.")
    per_day: int = Field(
        500, ge=0, le=10**6, description="Searches and pages a day; 0: no limit."
    )

    @model_validator(mode="after")
    def _check(self) -> "WebSettings":
        if self.search is SearchProvider.SEARXNG and not self.url:
            raise SettingsClash("url is missing: where SearXNG is", ("url",))
        if self.url.lower().startswith("http:") and not self._is_near:
            raise SettingsClash(
                "url is plain http to another machine, so others could read what is "
                "searched: use https",
                ("url",),
            )
        return self

    @property
    def on(self) -> bool:
        """Whether models get web tools."""
        return self.search is not SearchProvider.OFF

    @property
    def provider(self) -> Provider:
        """The API of the provider.

        Raises:
            KeyError: search is off.
        """
        return PROVIDERS[self.search]

    @property
    def base_url(self) -> str:
        """The address of the provider, "" if search is off."""
        return (self.url or self.provider.base_url) if self.on else ""

    @property
    def _is_near(self) -> bool:
        """Whether the address is on this machine, or in a private network."""
        if is_loopback(self.url):
            return True
        try:
            host = ipaddress.ip_address(urlsplit(self.url).hostname or "")
        except ValueError:
            return False
        return host.is_private and not (self.on and self.provider.key_env)
