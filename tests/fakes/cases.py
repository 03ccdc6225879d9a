"""Parameters of tests that belong to a case of tests/cases.toml."""

import re
from typing import Any

import pytest
from _pytest.mark.structures import MarkDecorator, ParameterSet

_CASE = re.compile(r"[BF]\d\d+")


def case_param(
    *values: Any, id: str, marks: tuple[MarkDecorator, ...] = ()
) -> ParameterSet:
    """Make a parameter whose id begins with its case, and mark it with that."""
    found = _CASE.match(id)
    assert found, f"{id} names no case"
    return pytest.param(*values, id=id, marks=(pytest.mark.case(found[0]), *marks))
