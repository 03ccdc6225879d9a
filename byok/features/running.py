"""All features of a running daemon, behind one interface for server and wiring."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import to_builtins
from msgspec.structs import replace

from byok.core.chat import Json
from byok.core.code_query import RetrievalRequest
from byok.features import ROWS
from byok.features.base import (
    PASS,
    Asking,
    Feature,
    Feed,
    Number,
    OwnPage,
    Site,
    Supplies,
    Verdict,
)

if TYPE_CHECKING:
    from byok.upstream.own_tools import OwnTool, OwnTools

_POLL_SECONDS = 0.02


class Features:
    """All features by their names; only overridden hooks are called."""

    def __init__(self, running: Mapping[str, Feature]) -> None:
        self._running = running
        self._admitting = _overriding(running, "admit")
        self.observers = _overriding(running, "request_started", "request_finished")
        self._recalling = _overriding(running, "recall")
        self._paged = _overriding(running, "page")
        self._equipped = _overriding(running, "own_tools")

    def configure(self, supplies: Supplies) -> None:
        """Let all features use other settings.

        Raises:
            ConfigError: a feature cannot use them.
        """
        for feature in self._running.values():
            feature.configure(supplies)

    async def admit(self, asking: Asking) -> Verdict:
        """Return the verdict of all features; each one sees the changes before it.

        The first one that ends the request is the last one that is called.
        """
        combined = PASS
        for feature in self._admitting:
            verdict = await feature.admit(asking)
            if verdict is PASS:
                continue
            if verdict.chat is not None:
                asking = replace(asking, chat=verdict.chat)
            notices = combined.notices + verdict.notices
            chat = verdict.chat or combined.chat
            combined = replace(verdict, notices=notices, chat=chat)
            if verdict.ends:
                break
        return combined

    @property
    def recalls(self) -> bool:
        """Whether earlier conversations are remembered."""
        return any(feature.recalls for feature in self._recalling)

    async def recall(self, request: RetrievalRequest) -> str | None:
        """Return passages of earlier conversations, None if none are remembered."""
        for feature in self._recalling:
            if feature.recalls:
                return await feature.recall(request)
        return None

    @cached_property
    def own_tools(self) -> "OwnTools":
        """Byok's own tools by the current settings."""
        from byok.upstream.own_tools import OwnTools  # late: the port opens sooner

        return OwnTools(self._list_tools)

    def _list_tools(self) -> "list[OwnTool]":
        return [tool for feature in self._equipped for tool in feature.own_tools]

    async def status_of(self, name: str) -> list[Json]:
        """Return the rows of one feature, as JSON; none if it does not run."""
        feature = self._running.get(name)
        rows = await feature.status() if feature else None
        return list(map(to_builtins, rows or ()))

    async def ask(self, name: str, body: Json) -> Json:
        """Return a feature's answer to the request of its command."""
        return await self._running[name].answer(body)

    async def status(self) -> dict[str, list[Json]]:
        """Return the rows of each feature that has something to show, as JSON."""
        status = {n: await feature.status() for n, feature in self._running.items()}
        return {
            name: list(map(to_builtins, rows))
            for name, rows in status.items()
            if rows is not None
        }

    @property
    def handlers(self) -> dict[str, Callable[[Json], Awaitable[Json]]]:
        """The handlers of commands, by the descriptions in the rows."""
        return {
            row.answers: self._running[row.name].answer
            for row in ROWS
            if row.answers and row.name in self._running
        }

    @property
    def feeds(self) -> dict[str, Feed]:
        """The changes for the page, by the features' names."""
        feeds = {name: feature.feed for name, feature in self._running.items()}
        return {name: feed for name, feed in feeds.items() if feed is not None}

    def page_at(self, raw_path: str) -> OwnPage | None:
        """Return the page at a path, None if no feature has one there."""
        path = raw_path.partition("?")[0]
        for feature in self._paged:
            if (page := feature.page) and page.path == path:
                return page
        return None

    @property
    def numbers(self) -> list[Number]:
        """The numbers of all features for the metrics."""
        features = self._running.values()
        return [number for feature in features for number in feature.numbers]

    async def count_predecessor(self, seconds: float) -> None:
        """Count the last requests of the previous daemon, which has ended.

        This waits at most so many seconds until the requests of this daemon are
        written, too.
        """
        for _ in range(round(seconds / _POLL_SECONDS)):
            if not any(feature.unwritten for feature in self._running.values()):
                break
            await asyncio.sleep(_POLL_SECONDS)
        for feature in self._running.values():
            feature.read_again()

    def stop(self) -> None:
        """End all feeds and timers."""
        for feature in self._running.values():
            feature.stop()

    def close(self) -> None:
        """Close all features, the last row first. Blocks for seconds."""
        with ExitStack() as stack:
            for feature in self._running.values():
                stack.callback(feature.close)


def start_features(site: Site) -> Features:
    """Create every feature that has a running part."""
    return Features({row.name: row.load_running()(site) for row in ROWS if row.running})


def _overriding(running: Mapping[str, Feature], *hooks: str) -> list[Feature]:
    """Return the features that override one of these hooks, in their order."""
    return [
        feature
        for feature in running.values()
        if any(getattr(type(feature), h) is not getattr(Feature, h) for h in hooks)
    ]
