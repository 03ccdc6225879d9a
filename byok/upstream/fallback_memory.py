"""Which model answers the rest of a turn that fell back to another one.

Its prompt is cached there. The user's next message goes to the chosen model again,
unless that one named a later time, or was too slow to ask it once more.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeAlias

from byok.errors import ByokError, UpstreamRefused, UpstreamTimeout
from byok.purposes import Purpose

_MAX_REMEMBERED = 1000
_REST_SECONDS = 3600.0  # without a request; no cache is kept for longer
_SLOW_REST = 300.0  # of a model that did not answer in time: asking it costs minutes
_MINUTE = 60.0  # that requests without a conversation stay elsewhere

Topic: TypeAlias = tuple[Purpose, str, str]  # the purpose, conversation, chosen model


class FallbackMemory:
    """Which model a conversation stays with; kept while the settings change."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[Topic, tuple[str, float]] = OrderedDict()
        self._rests: OrderedDict[str, float] = OrderedDict()  # of models, until when

    def find(self, topic: Topic) -> str:
        """Return the id of the model that a conversation stays with, or ""."""
        model_id, until = self._kept.get(topic, ("", 0.0))
        return model_id if self._clock() < until else ""

    def stays(self, topic: Topic, *, continues: bool) -> bool:
        """Tell whether a request goes on with the model that answered the last one.

        `continues`: it only brings the results of tools.
        """
        _, conversation, chosen = topic
        rests = self._clock() < self._rests.get(chosen, 0.0)
        return continues or rests or not conversation

    def note_failure(self, model_id: str, error: ByokError) -> None:
        """Let a model rest as long as it asked for, or if it was too slow."""
        seconds = _SLOW_REST if isinstance(error, UpstreamTimeout) else 0.0
        if isinstance(error, UpstreamRefused) and error.retry_after:
            seconds = min(error.retry_after, _REST_SECONDS)
        self._rests.pop(model_id, None)
        if seconds:
            self._rests[model_id] = self._clock() + seconds
            if len(self._rests) > _MAX_REMEMBERED:
                self._rests.popitem(last=False)

    def keep(self, topic: Topic, model_id: str) -> None:
        """Stay with a model from now on; "" goes back to the chosen one."""
        before, until = self._kept.pop(topic, ("", 0.0))
        if not model_id:
            return
        if topic[1]:
            until = self._clock() + _REST_SECONDS
        elif before != model_id or until <= self._clock():
            until = self._clock() + _MINUTE
        self._kept[topic] = (model_id, until)
        if len(self._kept) > _MAX_REMEMBERED:
            self._kept.popitem(last=False)
