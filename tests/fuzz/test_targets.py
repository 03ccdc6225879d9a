"""The fuzz targets themselves: each runs, and holds on its seeds and on a few bytes."""

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.augment.endpoints import ENDPOINTS
from byok.server.openai_api import ROUTES
from tests.fuzz.__main__ import TARGETS
from tests.fuzz.target import Draw, Target, check_linear

NAMES = [name for name, packages in TARGETS.items() if packages]


def target(name: str) -> Target:
    module: Any = importlib.import_module(f"tests.fuzz.{name}")
    found: Target = module.TARGET
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the root logger as it was."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)


@pytest.mark.parametrize("name", NAMES)
def test_a_target_holds_on_its_seeds_and_on_any_bytes(name: str) -> None:
    found = target(name)

    @settings(max_examples=25, database=None)
    @given(st.binary(max_size=120))
    def check(data: bytes) -> None:
        found.check(data)

    with quiet(), found.opened():
        for seed in found.seeds:
            found.check(seed)
        check()
    assert isinstance(found.facts(), dict)


def test_the_description_for_schemathesis_has_every_row() -> None:
    pytest.importorskip("schemathesis", reason="of the group fuzz, see scripts/fuzz")
    surface: Any = importlib.import_module("tests.fuzz.surface")
    rows = {row.path for row in (*ENDPOINTS, *ROUTES)}
    assert set(surface.description()["paths"]) == rows


def test_choices_come_from_the_bytes_and_end_with_them() -> None:
    draw = Draw(b"\x02\x01ab\x07\xff")
    assert draw.of("abc") == "c"
    assert draw.raw(3) == b"a"
    assert draw.rest() == b"b\x07\xff"
    assert draw.empty
    assert (draw.upto(9), draw.of("xy"), draw.one_in(2)) == (0, "x", False)


def test_what_takes_more_than_linear_time_is_found() -> None:
    def cubic(size: int) -> int:
        every = range(size)
        return sum(1 for _ in every for _ in every for _ in every)

    with pytest.raises(AssertionError, match="not linear"):
        check_linear(cubic, 100)
    check_linear(lambda size: sum(range(size)), 1200)
