"""Functions whose modules are loaded when they are first called."""

from collections.abc import Callable
from functools import cache
from pkgutil import resolve_name
from typing import Any


def late_function(place: str) -> Callable[..., Any]:
    """Return a function by its place, `package.module:name`.

    A table of these keeps the modules of rows that nobody uses out of memory.
    """

    @cache
    def find() -> Callable[..., Any]:
        function: Callable[..., Any] = resolve_name(place)
        return function

    return lambda *args, **kwargs: find()(*args, **kwargs)
