"""The common part of web tools: a count of the day's calls, and the last failure."""

from collections.abc import Callable
from datetime import date, datetime

from byok.core.redact import Redactor

_MAX_LINE_CHARS = 160  # of a query or an address in the line for the user


class WebFailure(Exception):
    """The reason of a failed call, as a sentence for model and user."""


class WebCalls:
    """Counts the calls of each day of this machine's clock, and stores failures.

    Attributes:
        most: the maximum number of calls a day, 0 for any number.
        failure: why the last call failed, "" if it did not.
    """

    def __init__(self, clock: Callable[[], float], redactor: Redactor) -> None:
        self._clock = clock
        self._redactor = redactor
        self._day = date.min
        self._used = 0
        self.most = 0
        self.failure = ""

    @property
    def used(self) -> int:
        """The calls of today, since byok started."""
        today = datetime.fromtimestamp(self._clock()).date()
        if today != self._day:
            self._day, self._used = today, 0
        return self._used

    def begin(self, argument: str) -> str:
        """Count a call; return its argument without the secrets that byok knows.

        Raises:
            WebFailure: the argument is empty, or the day's limit is reached.
        """
        if not argument.strip():
            raise WebFailure("not done: the call names nothing")
        if self.most and self.used >= self.most:
            raise WebFailure(
                f"not done: {self.most:,} searches and pages a day are allowed "
                "(per_day under [web] in the settings of byok)"
            )
        self._used = self.used + 1
        return self._redactor(argument)

    def end(self, description: str, failure: WebFailure | None = None) -> str:
        """Store the outcome of a call; return the line for the user."""
        self.failure = self._redactor(str(failure)) if failure else ""
        line = " ".join(self._redactor(description).split())
        if len(line) > _MAX_LINE_CHARS:
            line = f"{line[:_MAX_LINE_CHARS]}…"
        return f"{line}: {self.failure}." if failure else f"{line}."
