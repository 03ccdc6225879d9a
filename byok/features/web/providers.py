"""Who searches the web: each provider is a row; values in, values out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from typing import Any, NamedTuple

from msgspec import Struct

from byok import __version__

AGENT = f"byok/{__version__}"
MOST_RESULTS = 10
_TAG = re.compile(r"</?[a-z][^<>]{0,40}>", re.IGNORECASE)  # marks words that were found
_ADDRESS = re.compile(r"https?://\S{1,2000}")  # shown whole or not at all
_TITLE, _SNIPPET = 200, 500  # characters


class Provider(Struct, frozen=True):
    """How a provider is asked, and where its answer has what.

    Attributes:
        base_url: where it is; "" for a server of the user's own.
        key_env: the usual variable of its key; "" if it needs none.
        key_header: the header of the key, and what stands in it before the key.
        words: the name of the parameter with the question; `count` that of the number
            of results, and `more` are others.
        is_post: the parameters are a body of JSON.
        results: the keys on the way to the list; `snippets` where its items may have
            the words that were found.
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
        """Return the parameters of a question."""
        count = {self.count: MOST_RESULTS} if self.count else {}
        return {self.words: words, **count, **self.more}

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers of a question."""
        name, before = self.key_header
        return {name: f"{before}{key}"} if name and key else {}


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
    """A result of a search, as one line each."""

    url: str
    title: str
    snippet: str


def read_hits(provider: Provider, answer: Any) -> list[SearchHit]:
    """Return the first results of an answer; what is none is left out.

    Raises:
        ValueError: there is no list of results in it.
    """
    found = answer
    for key in provider.results:
        found = found.get(key) if isinstance(found, dict) else None
    if found is None and isinstance(answer, dict) and not answer.get("error"):
        found = []  # some leave out a list that is empty
    if not isinstance(found, list):
        raise ValueError("it holds no results")
    hits = (hit for item in found[:1000] if (hit := _read_hit(provider, item)))
    return [hit for hit, _ in zip(hits, range(MOST_RESULTS), strict=False)]


def name_failures(answer: Any) -> str:
    """Return which engines of a SearXNG gave no answer, and why; "" for none."""
    told = answer.get("unresponsive_engines") if isinstance(answer, dict) else None
    named: list[str] = []
    for pair in told if isinstance(told, list) else []:
        match pair:
            case [str(engine), str(why)]:
                named.append(f"{_line(engine, 40)} ({_line(why, 80)})")
            case _:
                pass
    return ", ".join(named[:5])


def _read_hit(provider: Provider, item: Any) -> SearchHit | None:
    url = item.get("url") if isinstance(item, dict) else None
    if not isinstance(url, str) or not _ADDRESS.fullmatch(url):
        return None
    shown = " … ".join(next(filter(None, map(list, _texts(provider, item))), []))
    return SearchHit(url, _line(item.get("title"), _TITLE), _line(shown, _SNIPPET))


def _texts(provider: Provider, item: Mapping[str, Any]) -> Iterator[Iterator[str]]:
    """Give the texts of each place where an item may have some."""
    for name in provider.snippets:
        held = item.get(name)
        some = held[:5] if isinstance(held, list) else [held]
        yield (text for text in some if isinstance(text, str) and text)


def _line(text: Any, most: int) -> str:
    """Return a text as one line without marks, cut."""
    if not isinstance(text, str):
        return ""
    plain = unescape(_TAG.sub("", text[: 4 * most]))
    return " ".join(plain.split())[:most]
