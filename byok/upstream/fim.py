"""FIM: ask for code between a prefix and a suffix, in the best mode of a model."""

import logging
from collections.abc import Mapping

from byok.core.errors import ByokError, RefusalKind, UpstreamError, UpstreamRefused
from byok.core.record import current_record
from byok.dialects.base import Codec
from byok.dialects.fim_codecs import modes_for
from byok.dialects.fim_templates import FimMode
from byok.upstream.base import Plan, Recovery

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


class AnotherFimMode(Recovery):
    """Tries FIM modes in order, and keeps to the one that a model accepted.

    `codecs` are the upstream's, by mode; None stands for a chat.
    """

    def __init__(self, upstream: str, codecs: Mapping[FimMode, Codec | None]) -> None:
        self._upstream = upstream
        self._codecs = codecs
        self._used: dict[str, FimMode] = {}  # model -> the mode it took last
        self._logged: set[FimMode] = set()

    async def prepare(self, plan: Plan) -> Plan:
        """Choose the mode of a request that fills a gap."""
        if plan.request.fim is None or plan.mode is not None:
            return plan
        modes, known = self._modes(plan.model), self._used.get(plan.model)
        return self._use(plan, known if known in modes else modes[0])

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Use the mode after one that is not served here."""
        if plan.mode is None or not _refuses_mode(failure):
            return failure
        self._used.pop(plan.model, None)
        modes = self._modes(plan.model)
        following = modes[modes.index(plan.mode) + 1 :]
        if not following:
            return failure
        if plan.mode not in self._logged:
            self._logged.add(plan.mode)
            _log.info("%s does not serve FIM by %s", self._upstream, plan.mode)
        return self._use(plan, following[0])

    def note_begin(self, plan: Plan) -> None:
        """Begin with this mode from now on."""
        if plan.mode is not None:
            if len(self._used) > _MAX_MODELS:
                self._used.clear()
            self._used[plan.model] = plan.mode
        if plan.codec is not None:
            current_record().prompt = ""  # only a chat is told one

    def _use(self, plan: Plan, mode: FimMode) -> Plan:
        """Return the plan in a mode; what was found out about another one is void."""
        return plan.having(
            mode=mode,
            codec=self._codecs[mode],
            patience=None,
            remedies=None,
            written=None,
        )

    def _modes(self, model: str) -> list[FimMode]:
        try:
            return modes_for(self._codecs, model)
        except UpstreamError as error:
            error.upstream = self._upstream
            raise


def _refuses_mode(failure: ByokError) -> bool:
    """Tell whether the mode is refused, and not this request.

    A refusal inside a stream, which has no status, never is one of the mode.
    """
    return (
        isinstance(failure, UpstreamRefused)
        and failure.upstream_status in _NOT_SERVED
        and failure.kind in _NOT_KNOWN
    )
