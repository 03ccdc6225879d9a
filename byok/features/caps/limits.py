"""The caps of the settings, and what is said about them."""

from enum import StrEnum
from typing import NamedTuple

from byok.errors import BadRequest
from byok.features.caps.ledger import Spent
from byok.features.caps.settings import CapSettings
from byok.features.status import Meter
from byok.journal.cost import write_cost

CAP_REACHED = "cap_reached"
_SOON = 0.8  # the part of a cap at which the user is told


class Unit(StrEnum):
    """What is counted."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    DOLLARS = "usd"


class Period(StrEnum):
    """What the counts belong to."""

    DAY = "day"
    CONVERSATION = "conversation"


class Cap(NamedTuple):
    """A limit of the user's: no request begins once `most` of the `unit` is used."""

    unit: Unit
    period: Period
    most: float

    @property
    def name(self) -> str:
        """The key in the settings."""
        return f"{self.unit}_per_{self.period}"

    def measure(self, spent: Spent, begun: int = 0) -> float:
        """Return how much of the cap is used; `begun` are unfinished requests."""
        match self.unit:
            case Unit.REQUESTS:
                return spent.requests + begun
            case Unit.TOKENS:
                return spent.tokens
            case Unit.DOLLARS:
                return spent.dollars

    def is_near(self, used: float) -> bool:
        """Whether the user should know."""
        return used >= _SOON * self.most

    def describe(self, used: float, unpriced: int = 0) -> str:
        """Say how much is used, and how many requests are not in it."""
        if self.unit is Unit.DOLLARS:
            comma = "," if unpriced else ""
            amounts = f"{write_cost(used, unpriced)}{comma} of ${self.most:,.2f}"
        else:
            amounts = f"{used:,.0f} of {self.most:,.0f} {self.unit}"
        when = "today" if self.period is Period.DAY else "in this conversation"
        return f"{amounts} {when}"

    def warning(self, used: float, unpriced: int = 0) -> str:
        """Say that the cap is near."""
        return (
            f"byok's cap is near: {self.describe(used, unpriced)}. Beyond it no model "
            f"is asked ({self.name} under [caps] in the settings)."
        )

    def error(self, used: float, unpriced: int = 0) -> BadRequest:
        """Return the refusal of a request: a status at which no SDK asks again."""
        other = (
            "wait until midnight"
            if self.period is Period.DAY
            else "begin a new conversation"
        )
        return BadRequest(
            f"A cap of your settings is reached: {self.describe(used, unpriced)}.",
            hint=f"Raise {self.name} under [caps] in config.toml, which counts at "
            f"once, or {other}. byok usage shows what was asked.",
            code=CAP_REACHED,
            status=402,
        )

    def meter(self, used: float | None, unpriced: int) -> Meter:
        """Return how much of it is used, for displays."""
        in_dollars = self.unit is Unit.DOLLARS
        return Meter(self.name, used, self.most, in_dollars, unpriced)


def list_caps(settings: CapSettings) -> tuple[Cap, ...]:
    """Return the caps that are set."""
    named = ((unit, period) for period in Period for unit in Unit)
    found = (Cap(u, p, getattr(settings, f"{u}_per_{p}")) for u, p in named)
    return tuple(cap for cap in found if cap.most)
