"""Which model a conversation stays with that fell back to another one.

Its prompt is cached there. It comes back to the chosen model after an hour of rest.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeAlias

from byok.purposes import Purpose

_MAX_REMEMBERED = 1000
_REST_SECONDS = 3600.0  # without a request; no cache is kept for longer
_MINUTE = 60.0  # that requests without a conversation stay elsewhere

Topic: TypeAlias = tuple[Purpose, str, str]  # the purpose, conversation, chosen model


class FallbackMemory:
    """Which model a conversation stays with; kept while the settings change."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[Topic, tuple[str, float]] = OrderedDict()

    def find(self, topic: Topic) -> str:
        """Return the id of the model that a conversation stays with, or ""."""
        model_id, until = self._kept.get(topic, ("", 0.0))
        return model_id if self._clock() < until else ""

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
