"""The catalog of models: those in the settings, and those that upstreams list.

Reading never waits. Lists are fetched in the background and cached in a file, so that
they are known right after a start.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from byok.errors import ConfigError, NotReady, UpstreamError
from byok.model_ids import ListedModel
from byok.platform.paths import write_private
from byok.upstream.base import Upstream

_log = logging.getLogger(__name__)
_FRESH_SECONDS = 300.0
_MAX_LISTED = 500
_MAX_REMEMBERED = 50
# Names of models that do not chat; they are never chosen as a default.
_NO_CHAT = re.compile(
    r"embed|rerank|whisper|tts|dall-e|moderation|transcri|image|audio|speech|realtime"
    r"|guard|bge-|davinci|babbage|sora|veo|imagen",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Entry:
    upstream: Upstream
    by_hand: tuple[str, ...]
    chosen: str  # the user's default model of this upstream, may be ""
    key: str  # in the file
    found: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)  # chosen, listed by hand, found
    default: str = ""
    fetched: float = float("-inf")
    failure: str = ""
    fetching: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.learn([])

    def learn(self, found: list[str]) -> None:
        """Store a fetched list and what follows from it."""
        self.found = found
        chosen = (self.chosen,) if self.chosen else ()
        self.models = list(dict.fromkeys((*chosen, *self.by_hand, *found)))
        chat = (model for model in self.models if not _NO_CHAT.search(model))
        first = next(chat, self.models[0] if self.models else "")
        self.default = self.chosen or first


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """An upstream in the catalog, with its models from the settings and its default.

    `address` distinguishes upstreams of the same name in the cache file.
    """

    upstream: Upstream
    models: tuple[str, ...] = ()
    model: str = ""
    address: str = ""

    @property
    def key(self) -> str:
        """The name of this upstream in the cache file."""
        name = self.upstream.name
        return f"{name}@{self.address}" if self.address else name


class Catalog:
    """The models of all configured upstreams. Close it when done."""

    def __init__(
        self,
        entries: Iterable[CatalogEntry],
        file: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._clock = clock
        self._entries = {
            e.upstream.name: _Entry(e.upstream, e.models, e.model, e.key)
            for e in entries
        }
        remembered = _read_cache(file)
        for entry in self._entries.values():
            entry.learn(remembered.get(entry.key, []))

    def models_of(self, name: str) -> list[str]:
        """Return the models of an upstream: default, configured, listed."""
        return self._entries[name].models

    def default_of(self, name: str) -> str:
        """Return the default model of an upstream, or ""."""
        return self._entries[name].default

    def list_models(self) -> list[ListedModel]:
        """Return all models, in the order of the settings."""
        return [
            ListedModel(name, model)
            for name in self._entries
            for model in self.models_of(name)
        ]

    def failure_of(self, name: str) -> str:
        """Return why the last fetch of an upstream's list failed, or ""."""
        return self._entries[name].failure

    def refresh(self, *, anew: bool = False) -> None:
        """Start to fetch lists that are old, or all of them; returns at once."""
        for name, entry in self._entries.items():
            old = anew or self._clock() - entry.fetched > _FRESH_SECONDS
            if old and (entry.fetching is None or entry.fetching.done()):
                entry.fetching = asyncio.ensure_future(self._fetch(name, entry))

    async def settle(self, seconds: float) -> None:
        """Wait for running fetches, for at most `seconds`."""
        tasks = [
            t for e in self._entries.values() if (t := e.fetching) and not t.done()
        ]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def close(self) -> None:
        """Cancel running fetches."""
        tasks = [e.fetching for e in self._entries.values() if e.fetching is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch(self, name: str, entry: _Entry) -> None:
        try:
            found = await entry.upstream.models()
        except (UpstreamError, ConfigError, NotReady) as error:
            entry.failure = error.sentence
            entry.fetched = self._clock()
            _log.warning("no list of models: %s", error.sentence)
            return
        entry.learn(found[:_MAX_LISTED])
        entry.failure = ""
        entry.fetched = self._clock()
        lists = {e.key: e.found for e in self._entries.values() if e.found}
        await asyncio.to_thread(_remember, self._file, lists)


def _read_cache(file: Path) -> Mapping[str, list[str]]:
    """Read the lists of the last run; a damaged cache file is ignored."""
    try:
        lists = orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(lists, dict):
        return {}
    return {
        name: [m for m in models if isinstance(m, str)]
        for name, models in lists.items()
        if isinstance(models, list)
    }


def _remember(file: Path, lists: Mapping[str, list[str]]) -> None:
    merged = {**_read_cache(file), **lists}
    kept = dict(list(merged.items())[-_MAX_REMEMBERED:])
    try:
        write_private(file, orjson.dumps(kept).decode())
    except OSError as error:
        _log.warning("the list of models cannot be kept: %s", error.strerror)
