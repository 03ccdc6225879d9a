"""Bodies judged by the request types of the vendors' own SDKs."""

from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter


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
