"""The providers of web searches, a row each: writes requests, reads answers; no I/O."""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from typing import Any, NamedTuple

from msgspec import Struct

from byok import __version__

AGENT = f"byok/{__version__}"
MOST_RESULTS = 10
_TAG = re.compile(r"</?[a-z][^<>]{0,40}>", re.IGNORECASE)  # around matching words
_ADDRESS = re.compile(r"https?://\S{1,2000}")  # never cut
_MAX_TITLE_CHARS, _MAX_SNIPPET_CHARS = 200, 500


class Provider(Struct, frozen=True):
    """The API of a provider.

    Attributes:
        base_url: its address; "" for a server of the user.
        key_env: the usual environment variable of its key; "" if it needs none.
        key_header: the header of the key, and the text before the key in it.
        path: of searches.
        words: the name of the parameter with the query.
        count: the name of the parameter with the number of results, "" for none.
        more: other parameters.
        is_post: whether the parameters are a body of JSON.
        results: the keys that lead to the list of results.
        snippets: the fields of a result that may have text of the page.
    """

    base_url: str = ""
    key_env: str = ""
    key_header: tuple[str, str] = ("", "")
    path: str = "/search"
    words: str = "q"
    count: str = ""
    more: Mapping[str, Any] = {}
    is_post: bool = False
    results: Sequence[str] = ("results",)
    snippets: Sequence[str] = ("content",)

    def parameters(self, words: str) -> dict[str, Any]:
        """Return the parameters of a query."""
        count = {self.count: MOST_RESULTS} if self.count else {}
        return {self.words: words, **count, **self.more}

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers with a key."""
        name, prefix = self.key_header
        return {name: f"{prefix}{key}"} if name and key else {}


PROVIDERS: Mapping[str, Provider] = {
    "searxng": Provider(more={"format": "json"}),
    "brave": Provider(
        "https://api.search.brave.com",
        "BRAVE_API_KEY",
        ("X-Subscription-Token", ""),
        path="/res/v1/web/search",
        count="count",
        results=("web", "results"),
        snippets=("description",),
    ),
    "tavily": Provider(
        "https://api.tavily.com",
        "TAVILY_API_KEY",
        ("Authorization", "Bearer "),
        words="query",
        count="max_results",
        is_post=True,
    ),
    "exa": Provider(
        "https://api.exa.ai",
        "EXA_API_KEY",
        ("x-api-key", ""),
        words="query",
        count="numResults",
        more={"contents": {"highlights": True}},
        is_post=True,
        snippets=("highlights", "summary", "text"),
    ),
    "kagi": Provider(
        "https://kagi.com",
        "KAGI_API_KEY",
        ("Authorization", "Bot "),
        path="/api/v0/search",
        count="limit",
        results=("data",),
        snippets=("snippet",),
    ),
}


class SearchHit(NamedTuple):
    """A result of a search; each field is one line."""

    url: str
    title: str
    snippet: str


def read_hits(provider: Provider, answer: Any) -> list[SearchHit]:
    """Return the first results of an answer; invalid ones are left out.

    Raises:
        ValueError: the answer has no list of results.
    """
    items = answer
    for key in provider.results:
        items = items.get(key) if isinstance(items, dict) else None
    if items is None and isinstance(answer, dict) and not answer.get("error"):
        items = []  # some providers leave out an empty list
    if not isinstance(items, list):
        raise ValueError("it holds no results")
    hits = (hit for item in items[:1000] if (hit := _read_hit(provider, item)))
    return [hit for hit, _ in zip(hits, range(MOST_RESULTS), strict=False)]


def name_failures(answer: Any) -> str:
    """Return the engines of a SearXNG that failed, with the reasons; "" for none."""
    pairs = answer.get("unresponsive_engines") if isinstance(answer, dict) else None
    failures: list[str] = []
    for pair in pairs if isinstance(pairs, list) else []:
        match pair:
            case [str(engine), str(reason)]:
                failures.append(f"{_one_line(engine, 40)} ({_one_line(reason, 80)})")
            case _:
                pass
    return ", ".join(failures[:5])


def _read_hit(provider: Provider, item: Any) -> SearchHit | None:
    url = item.get("url") if isinstance(item, dict) else None
    if not isinstance(url, str) or not _ADDRESS.fullmatch(url):
        return None
    texts = next(filter(None, map(list, _snippet_texts(provider, item))), [])
    title = _one_line(item.get("title"), _MAX_TITLE_CHARS)
    return SearchHit(url, title, _one_line(" … ".join(texts), _MAX_SNIPPET_CHARS))


def _snippet_texts(
    provider: Provider, item: Mapping[str, Any]
) -> Iterator[Iterator[str]]:
    """Yield the texts of each field that may have text of the page."""
    for name in provider.snippets:
        value = item.get(name)
        values = value[:5] if isinstance(value, list) else [value]
        yield (text for text in values if isinstance(text, str) and text)


def _one_line(text: Any, longest: int) -> str:
    """Return a text as one line without tags, cut."""
    if not isinstance(text, str):
        return ""
    plain = unescape(_TAG.sub("", text[: 4 * longest]))
    return " ".join(plain.split())[:longest]
