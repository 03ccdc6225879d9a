"""Fill a gap in code in the best way that an upstream and its model know."""

import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import TypeAlias

from byok.chat import ChatRequest
from byok.dialects.base import Dialect
from byok.dialects.fim.dialects import FIM_DIALECTS, modes_for
from byok.dialects.fim_mode import FimMode
from byok.errors import RefusalKind, UpstreamError, UpstreamRefused
from byok.events import StreamEvent

_log = logging.getLogger(__name__)
_MAX_MODELS = 1000
# Another way helps only where the upstream does not have this one.
_NOT_SERVED = frozenset({400, 404, 405, 422, 501})
_NOT_KNOWN = frozenset({RefusalKind.UNKNOWN, RefusalKind.NOT_FOUND})

Events: TypeAlias = AsyncGenerator[list[StreamEvent], None]


class FimClient:
    """Tries one way after the other, and keeps to the one that a model took."""

    def __init__(
        self,
        name: str,
        ways: Iterable[FimMode],
        chat: Dialect,
        ask: Callable[[Dialect, ChatRequest, str], Events],
    ) -> None:
        self._name = name
        self._ways = tuple(ways)
        self._dialects = {**FIM_DIALECTS, FimMode.CHAT: chat}
        self._ask = ask
        self._taken: dict[str, FimMode] = {}  # model -> the way it took last
        self._told: set[FimMode] = set()

    async def stream(self, chat: ChatRequest, model: str) -> Events:
        """Yield the events of the first answer that is no such refusal."""
        for way, is_last in self._possible(model):
            asked = self._ask(self._dialects[way], chat, model)
            try:
                async with aclosing(asked) as batches:
                    async for batch in batches:
                        self._keep(model, way)
                        yield batch
                return
            except UpstreamRefused as error:
                if not _other_way(error):
                    raise
                self._taken.pop(model, None)
                if is_last:
                    raise
                self._tell(way)

    def _possible(self, model: str) -> Iterable[tuple[FimMode, bool]]:
        try:
            ways = modes_for(self._ways, model)
        except UpstreamError as error:
            error.upstream = self._name
            raise
        if (known := self._taken.get(model)) in ways:
            ways = ways[ways.index(known) :]
        return [(way, way is ways[-1]) for way in ways]

    def _tell(self, way: FimMode) -> None:
        if way not in self._told:
            self._told.add(way)
            _log.info("%s does not fill gaps by %s", self._name, way)

    def _keep(self, model: str, way: FimMode) -> None:
        if len(self._taken) > _MAX_MODELS:
            self._taken.clear()
        self._taken[model] = way


def _other_way(error: UpstreamRefused) -> bool:
    """Tell whether a refusal is of the way, and not of the request.

    One inside a stream, where no status is, never is.
    """
    return error.upstream_status in _NOT_SERVED and error.kind in _NOT_KNOWN
