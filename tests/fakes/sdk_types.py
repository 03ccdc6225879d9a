"""Bodies judged by the request types of the vendors' own SDKs."""

import importlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import TypeAdapter


@cache
def sdk_type(module: str, name: str) -> TypeAdapter[Any]:
    """Return what judges a type of an SDK, which is imported now, in seconds."""
    return TypeAdapter(getattr(importlib.import_module(module), name))


def check_type(adapter: TypeAdapter[Any], body: Any) -> None:
    """Raise pydantic's ValidationError if a body does not fit, at any depth.

    Pydantic checks the items of an Iterable only as they are taken.
    """
    todo = [adapter.validate_python(body)]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, (list, tuple, Iterator)):
            todo += list(value)
