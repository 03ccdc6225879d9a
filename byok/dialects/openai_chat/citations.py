"""Sources that an answer names: Perplexity's and xAI's lists, and annotations."""

from collections.abc import Iterator
from typing import Any

from byok.events import Citation


class SourceList:
    """The sources of one answer, each once; a title may come later than its address."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}

    def add(self, holder: dict[str, Any]) -> None:
        """Add the sources that a chunk or a message names."""
        for name in ("search_results", "citations", "annotations"):
            found = holder.get(name)
            for item in found if isinstance(found, list) else ():
                self._add(item)

    def take(self) -> Iterator[Citation]:
        """Give all of them, once."""
        titles, self._titles = self._titles, {}
        for url, title in titles.items():
            yield Citation(url, title)

    def _add(self, item: Any) -> None:
        """Add an address, or an object with one (in OpenAI's annotations, nested)."""
        place = item.get("url_citation", item) if isinstance(item, dict) else item
        url, title = place, None
        if isinstance(place, dict):
            url, title = place.get("url"), place.get("title")
        if not isinstance(url, str) or "://" not in url:
            return
        known = self._titles.setdefault(url, "")
        if isinstance(title, str) and not known:
            self._titles[url] = title
