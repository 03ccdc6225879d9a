"""Ids of tool calls: this API pairs calls and results by them in the whole input.

Some models number the calls of each turn anew, so an id may stand for several calls in
a conversation. Each but the first gets an id of its own.
"""

from collections import Counter
from collections.abc import Mapping

from byok.dialects.safe_names import Aliases, IdRule

_RULE = IdRule(64)


class CallIds:
    """The ids of one request, in the order of its calls and results."""

    def __init__(self) -> None:
        self._aliases = Aliases(_RULE.spell)
        self._calls: Counter[str] = Counter()
        self._originals: dict[str, str] = {}

    def call(self, call_id: str) -> str:
        """Return the id to send for the next call."""
        self._calls[call_id] += 1
        sent = self.result(call_id)
        self._originals[sent] = call_id
        return sent

    def result(self, call_id: str) -> str:
        """Return the id to send for a result: that of the latest call."""
        number = self._calls[call_id]
        own = f"{call_id}\0{number}" if number > 1 else call_id  # as no id is
        return self._aliases.alias(own)

    @property
    def originals(self) -> Mapping[str, str]:
        """The originals, by the ids to send so far."""
        return self._originals
