"""FIM: ask for code between a prefix and a suffix, in the best mode of a model."""

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import TypeAlias

from byok.chat import ChatRequest
from byok.dialects.base import Codec
from byok.dialects.fim.codecs import modes_for
from byok.dialects.fim.templates import FimMode
from byok.errors import RefusalKind, UpstreamError, UpstreamRefused
from byok.events import StreamEvent
from byok.record import current_record

_log = logging.getLogger(__name__)
_MAX_MODELS = 1000
# Another mode helps only where the upstream does not have this one.
_NOT_SERVED = frozenset({400, 404, 405, 422, 501})
_NOT_KNOWN = frozenset(
    {
        RefusalKind.UNKNOWN,
        RefusalKind.NOT_FOUND,
        RefusalKind.BAD_PARAMETER,
        RefusalKind.WRONG_API,
    }
)

Events: TypeAlias = AsyncGenerator[list[StreamEvent], None]


class FimClient:
    """Tries FIM modes in order, and keeps to the one that a model accepted.

    `codecs` are the upstream's, by mode; None stands for a chat.
    """

    def __init__(
        self,
        name: str,
        codecs: Mapping[FimMode, Codec | None],
        ask: Callable[[ChatRequest, str, Codec | None], Events],
    ) -> None:
        self._name = name
        self._codecs = codecs
        self._ask = ask
        self._used: dict[str, FimMode] = {}  # model -> the mode it took last
        self._logged: set[FimMode] = set()

    async def stream(self, chat: ChatRequest, model: str) -> Events:
        """Yield the events of the first mode that is not refused."""
        record = current_record()
        prompt = record.prompt
        for mode, is_last in self._possible(model):
            codec = self._codecs[mode]
            record.prompt = "" if codec else prompt  # only a chat is told one
            asked = self._ask(chat, model, codec)
            try:
                async with aclosing(asked) as batches:
                    async for batch in batches:
                        self._keep(model, mode)
                        yield batch
                return
            except UpstreamRefused as error:
                if not _helps_another_mode(error):
                    raise
                self._used.pop(model, None)
                if is_last:
                    raise
                self._log_refused(mode)

    def _possible(self, model: str) -> Iterable[tuple[FimMode, bool]]:
        try:
            modes = modes_for(self._codecs, model)
        except UpstreamError as error:
            error.upstream = self._name
            raise
        if (known := self._used.get(model)) in modes:
            modes = modes[modes.index(known) :]
        return [(mode, mode is modes[-1]) for mode in modes]

    def _log_refused(self, mode: FimMode) -> None:
        if mode not in self._logged:
            self._logged.add(mode)
            _log.info("%s does not serve FIM by %s", self._name, mode)

    def _keep(self, model: str, mode: FimMode) -> None:
        if len(self._used) > _MAX_MODELS:
            self._used.clear()
        self._used[model] = mode


def _helps_another_mode(error: UpstreamRefused) -> bool:
    """Tell whether the mode is refused, and not this request.

    A refusal inside a stream, which has no status, never is one of the mode.
    """
    return error.upstream_status in _NOT_SERVED and error.kind in _NOT_KNOWN
