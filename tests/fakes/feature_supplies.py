"""Where a feature stands in its tests, and what it is configured with."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from byok.core.code_query import IndexStatus
from byok.core.platform.paths import Paths, find_paths
from byok.core.redact import Redactor
from byok.features.base import Site
from byok.features.cost import PriceOf, no_price
from byok.settings import Settings


@dataclass(frozen=True)
class GivenSupplies:
    """Settings and prices that a test chooses; no services are opened."""

    settings: Settings = field(default_factory=Settings)
    price_of: PriceOf = no_price
    presets: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)

    async def ask_index(self) -> IndexStatus:
        """There is no index."""
        raise TimeoutError


def make_site(
    clock: Callable[[], float] = time.time, paths: Paths | None = None
) -> Site:
    """Return a place without any load."""
    load = SimpleNamespace(open=0, waiting=0)
    return Site(paths or find_paths(), Redactor(), clock, load)
