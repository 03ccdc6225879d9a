"""What all calls of the web tools share: their count of a day, and how they fail."""

from collections.abc import Callable
from datetime import date, datetime

from byok.core.redact import Redactor

_MOST_SHOWN = 160  # characters of a query or an address, to the user


class WebFailure(Exception):
    """Why nothing was found or read, as a sentence for model and user."""


class WebCalls:
    """Counts the calls of each day of this machine's clock, and hears how they went.

    Attributes:
        most: how many a day may have, 0 for any number.
        failure: why the last one failed, "" if it did not.
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

    def begin(self, given: str) -> str:
        """Count a call; return what it sends, without the secrets that byok knows.

        Raises:
            WebFailure: nothing was given, or today has had as many as it may.
        """
        if not given.strip():
            raise WebFailure("not done: the call names nothing")
        if self.most and self.used >= self.most:
            raise WebFailure(
                f"not done: {self.most:,} searches and pages a day are allowed "
                "(per_day under [web] in the settings of byok)"
            )
        self._used = self.used + 1
        return self._redactor(given)

    def end(self, what: str, failure: WebFailure | None = None) -> str:
        """Return the line for the user, and remember how the call went."""
        self.failure = self._redactor(str(failure)) if failure else ""
        shown = " ".join(self._redactor(what).split())
        if len(shown) > _MOST_SHOWN:
            shown = f"{shown[:_MOST_SHOWN]}…"
        return f"{shown}: {self.failure}." if failure else f"{shown}."
