"""Checked access to fields: what is absent, what is read, what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from byok.core.errors import BadRequest
from byok.protocols.v1 import fields

READ: list[tuple[Callable[[Any, str], Any], Any, Any, list[Any]]] = [
    (fields.text, "", "x", [1, [], {}, True]),
    (fields.number, None, 0.5, ["1", True, float("inf"), float("nan"), 10**400]),
    (fields.count, None, 7, [0, -1, 1.5, "7", True]),
    (fields.flag, None, True, [1, "true", []]),
    (fields.mapping, {}, {"a": 1}, [[], "x", 1]),
    (fields.objects, [], [{"a": 1}], [{}, [1], "x"]),
]


@pytest.mark.parametrize(("read", "absent", "good", "bad"), READ)
def test_fields_are_read_or_refused(
    read: Callable[[Any, str], Any], absent: Any, good: Any, bad: list[Any]
) -> None:
    assert read({}, "f") == read({"f": None}, "f") == absent
    assert read({"f": good}, "f") == good
    for value in bad:
        with pytest.raises(BadRequest, match="f must be"):
            read({"f": value}, "f")


def test_fields_strings_may_be_one_or_many() -> None:
    assert fields.strings({}, "f") == ()
    assert fields.strings({"f": "x"}, "f") == ("x",)
    assert fields.strings({"f": ["x", "", "y"]}, "f") == ("x", "y")
    wrong: list[Any] = [1, {}, ["x", 1]]
    for value in wrong:
        with pytest.raises(BadRequest):
            fields.strings({"f": value}, "f")
