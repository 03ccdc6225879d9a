"""Paths of settings, and what is at them."""

from typing import Any

import pytest

from byok.clients.editor import (
    MISSING,
    Leaf,
    SettingPath,
    find_value,
    value_leaves,
    write_path,
)


def test_setting_path_is_readable() -> None:
    assert write_path(("provider", "byok", "name")) == "provider > byok > name"


@pytest.mark.parametrize(
    ("path", "due"),
    [((), {"a": {"b": [1]}}), (("a", "b"), [1]), (("a", "c"), MISSING),
     (("a", "b", "0"), MISSING)],
)  # fmt: skip
def test_setting_is_found_in_mappings(path: SettingPath, due: Any) -> None:
    assert find_value({"a": {"b": [1]}}, path) == due


def test_setting_leaves_name_the_elements_of_lists() -> None:
    value = {"a": [{"name": "x", "y": 1}, {}, 2], "b": {}}
    assert list(value_leaves(value, ())) == [
        Leaf(("a", "name=x", "name"), "'x'"),
        Leaf(("a", "name=x", "y"), "1"),
        Leaf(("a", "[]"), ""),
        Leaf(("a", "[]"), "2"),
        Leaf(("b",), ""),
    ]
