"""What byok notes of a request while it answers it; never any content.

Whoever has something to note finds the record of the request by itself: it belongs to
the task that answers.
"""

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

from byok.events import Usage

_LONGEST = 100  # characters of a model's id


@dataclass(slots=True)
class Record:
    """One request: the log's line about it is made of this.

    `first_byte` is in seconds from the start to the upstream's first word, None without
    one. `attempts` counts requests to upstreams, `repairs` mended tool calls.
    """

    request_id: str = ""
    route: str = "(none)"
    model: str = ""  # the one that was asked, as byok:<upstream>:<model>
    first_byte: float | None = None
    attempts: int = 0
    repairs: int = 0
    failure: str = ""  # the code of an error that the answer itself tells
    usage: Usage | None = None
    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def note_first_byte(self) -> None:
        """Note that the upstream said something."""
        if self.first_byte is None:
            self.first_byte = self.clock() - self.started

    @property
    def seconds(self) -> float:
        """How long the request has taken so far."""
        return self.clock() - self.started

    def __str__(self) -> str:
        """Write what an upstream did, "" where none was asked."""
        if not self.model:
            return ""
        facts = [self.model[:_LONGEST]]
        if self.first_byte is not None:
            facts.append(f"first={self.first_byte * 1000:.0f}ms")
        if usage := self.usage:
            facts.append(f"in={usage.input_tokens} cached={usage.cache_read_tokens}")
            facts.append(f"out={usage.output_tokens}")
        if self.attempts > 1:
            facts.append(f"attempts={self.attempts}")
        if self.repairs:
            facts.append(f"repairs={self.repairs}")
        if self.failure:
            facts.append(f"error={self.failure}")
        return " ".join(facts)


_current: ContextVar[Record] = ContextVar("record")


def begin_record(record: Record) -> Record:
    """Make this the record of whatever the current task does from now on."""
    _current.set(record)
    return record


def current_record() -> Record:
    """Return the record of the request, or one that nobody reads."""
    return _current.get(None) or Record()
