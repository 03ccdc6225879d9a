"""The fuzz targets themselves: each runs, and holds on its seeds and on a few bytes."""

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.fuzz.__main__ import TARGETS
from tools.fuzz.target import Draw, Target

NAMES = [name for name, packages in TARGETS.items() if packages]


def target(name: str) -> Target:
    module: Any = importlib.import_module(f"tools.fuzz.{name}")
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
def test_fuzz_target_holds_on_its_seeds_and_on_any_bytes(name: str) -> None:
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


def test_fuzz_choices_come_from_the_bytes_and_end_with_them() -> None:
    draw = Draw(b"\x02\x01ab\x07\xff")
    assert draw.of("abc") == "c"
    assert draw.raw(3) == b"a"
    assert draw.rest() == b"b\x07\xff"
    assert draw.empty
    assert (draw.upto(9), draw.of("xy"), draw.one_in(2)) == (0, "x", False)
