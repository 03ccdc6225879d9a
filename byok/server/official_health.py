"""Failures of the official service: logged once, and again only after it recovered.

Most failures are the service's and concern a whole group of endpoints; one that refuses
a single request, as with 404, concerns that path.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from byok.errors import ByokError, KeyMissing, UpstreamRefused, UpstreamTimeout
from byok.routing import EndpointGroup

_log = logging.getLogger(__name__)
_OF_THE_SERVICE = frozenset({401, 402, 403, 407, 408, 425, 429})


@dataclass(slots=True)
class _Trouble:
    whole: str = ""  # what keeps the group from it
    paths: dict[str, str] = field(default_factory=dict)


class OfficialHealth:
    """Keeps the failures of each group; a silent service is left alone for `pause`."""

    def __init__(
        self, pause: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pause = pause
        self._clock = clock
        self._keyless = False
        self._found: dict[EndpointGroup, _Trouble] = {
            group: _Trouble() for group in EndpointGroup
        }
        self._until: dict[EndpointGroup, float] = {}

    def is_paused(self, group: EndpointGroup) -> bool:
        """Tell whether the group has just waited in vain."""
        return self._clock() < self._until.get(group, 0.0)

    def note_failure(self, group: EndpointGroup, path: str, error: ByokError) -> None:
        """Note a failure, and write down a new one."""
        trouble, reason = self._found[group], _reason(error)
        if isinstance(error, UpstreamTimeout):
            self._until[group] = self._clock() + self._pause
        if isinstance(error, KeyMissing):
            known, self._keyless = self._keyless, True
        elif _concerns_path(error):
            known = path in trouble.paths
            trouble.paths[path] = reason
        else:
            known = bool(trouble.whole)
            trouble.whole = trouble.whole or reason
        if not known:
            _log.warning(
                "the official service does not answer %s (group %s), so byok does: %s",
                path,
                group,
                reason,
            )

    def over(self, group: EndpointGroup, path: str) -> None:
        """Note that the service answered."""
        trouble, self._keyless = self._found[group], False
        if trouble.paths.pop(path, "") or trouble.whole:
            trouble.whole = ""
            _log.info("the official service answers %s (group %s) again", path, group)

    @property
    def reasons(self) -> dict[str, str]:
        """What is wrong, by group or path."""
        found: dict[str, str] = {}
        for group, trouble in self._found.items():
            if trouble.whole:
                found[group.value] = trouble.whole
            found |= trouble.paths
        if self._keyless:
            found["no token"] = "byok keys set official"
        return found


def _concerns_path(error: ByokError) -> bool:
    if not isinstance(error, UpstreamRefused):
        return False
    status = error.upstream_status
    return 400 <= status < 500 and status not in _OF_THE_SERVICE


def _reason(error: ByokError) -> str:
    """Say what happened, without the words of others."""
    if isinstance(error, UpstreamRefused):
        return f"it answered {error.upstream_status}. {error.hint}".strip()
    return error.log_text
