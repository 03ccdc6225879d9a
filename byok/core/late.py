"""Lazy functions and patterns: each is imported or compiled at its first use."""

import re
from collections.abc import Callable
from functools import cache, cached_property
from pkgutil import resolve_name
from typing import Any, cast


def late_function(path: str) -> Callable[..., Any]:
    """Return a function that imports another, `package.module:name`, at its first call.

    With such functions in a table, the modules of unused rows are not loaded.
    """

    @cache
    def resolve() -> Callable[..., Any]:
        function: Callable[..., Any] = resolve_name(path)
        return function

    return lambda *args, **kwargs: resolve()(*args, **kwargs)


class _LatePattern:
    """A `re.Pattern` that is compiled when a method is first used."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._arguments = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(*self._arguments)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._compiled, name)
        setattr(self, name, method)  # so that each method comes here once
        return method


def compile_late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, but compile at the first use, to keep the start of byok fast.

    Errors in the pattern are raised at the first use, too.
    """
    return cast("re.Pattern[str]", _LatePattern(pattern, flags))
