"""What is made when it is used first: modules of functions, patterns."""

import re
from collections.abc import Callable
from functools import cache, cached_property
from pkgutil import resolve_name
from typing import Any, cast


def late_function(place: str) -> Callable[..., Any]:
    """Return a function by its place, `package.module:name`.

    A table of these keeps the modules of rows that nobody uses out of memory.
    """

    @cache
    def find() -> Callable[..., Any]:
        function: Callable[..., Any] = resolve_name(place)
        return function

    return lambda *args, **kwargs: find()(*args, **kwargs)


class _LatePattern:
    """Becomes a `re.Pattern`, method by method, as each is asked for."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(*self._given)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._compiled, name)
        setattr(self, name, method)  # so this is asked once
        return method


def compile_late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what `re.compile` does, for modules of which a start needs no pattern.

    Its errors come at the first use, too.
    """
    return cast("re.Pattern[str]", _LatePattern(pattern, flags))
