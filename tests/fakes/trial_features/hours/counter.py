"""Counts the requests of clients by the hour."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from msgspec import to_builtins

from byok.core.chat import Json
from byok.core.record import RequestRecord
from byok.features.base import Feature, Site, Supplies
from byok.features.status import Meter, StatusLine, StatusRow

from .settings import HourSettings


class HourCounter(Feature):
    """Counts each request when it ends."""

    def __init__(self, site: Site) -> None:
        self._clock = site.clock
        self._busy = 0
        self._requests: Counter[str] = Counter()

    def configure(self, supplies: Supplies, /) -> None:
        """Show a meter up to so many requests, 0 for none, from now on."""
        self._busy = supplies.settings.section(HourSettings).busy

    def request_finished(self, record: RequestRecord, /) -> None:
        """Count a request of a client."""
        if record.is_of_client:
            self._requests[self._hour] += 1

    async def status(self) -> Sequence[StatusRow]:
        """Show the requests of this hour."""
        if not self._busy:
            return ()
        return (Meter("requests_this_hour", self._requests[self._hour], self._busy),)

    async def answer(self, body: Json, /) -> Json:
        """Answer the command with a line an hour."""
        del body
        lines = [
            StatusLine(f"{hour}:00 {n:,}") for hour, n in sorted(self._requests.items())
        ]
        return {"rows": to_builtins(lines)}

    @property
    def _hour(self) -> str:
        return datetime.fromtimestamp(self._clock()).strftime("%Y-%m-%d %H")
