"""Where a feature stands in its tests."""

import time
from collections.abc import Callable
from types import SimpleNamespace

from byok.core.platform.paths import Paths, find_paths
from byok.core.redact import Redactor
from byok.features.base import Site


def make_site(
    clock: Callable[[], float] = time.time, paths: Paths | None = None
) -> Site:
    """Return a place without any load."""
    load = SimpleNamespace(open=0, waiting=0)
    return Site(paths or find_paths(), Redactor(), clock, load)
