"""What a feature is configured with, for its tests: no services are opened."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from byok.config import Settings
from byok.journal.cost import PriceOf, no_price


@dataclass(frozen=True)
class GivenSupplies:
    """Settings and prices that a test chooses."""

    settings: Settings = field(default_factory=Settings)
    price_of: PriceOf = no_price
    presets: Mapping[str, str] = field(default_factory=dict)
