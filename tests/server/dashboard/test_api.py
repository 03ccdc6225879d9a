"""What the page may ask for: names of what commands ask for too, and exact fields."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from byok.core.errors import BadRequest
from byok.server.dashboard.endpoint import (
    read_choice,
    read_count,
    read_flag,
    read_number,
    read_text,
    read_texts,
    read_time,
    refuse_empty,
)
from tests.fakes.dashboard import Page

NAMES = {
    "daemon": "model",
    "official": "base_url",
    "catalog": "models",
    "keys": "keys",
    "index": "workspaces",
}
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": ""}),
    ("search", {"query": "x" * 10_001}),
    ("search", {"query": "x", "limit": 51}),
    ("search", {"query": "x", "workspaces": "/"}),
    ("retrieval", {"query": "x", "length": 0}),
    ("retrieval", {"query": ["x"]}),
    ("index-skipped", {"root": ""}),
    ("index-skipped", {"root": "/", "reason": "because"}),
    ("index-skipped", {"root": "/", "offset": -1}),
    ("index-skipped", {"root": "/", "limit": 201}),
    ("index-skipped", {"root": "/not-a-workspace"}),
    ("index-why", {"path": "relative"}),
    ("index-add", {"root": "../up"}),
    ("requests", {"count": 201}),
    ("requests", {"before": 2**63}),
    ("requests", {"errors": 1}),
    ("requests", {"everything": "yes"}),
    ("requests", {"conversation": "c" * 20_001}),
    ("conversations", {"count": 0}),
    ("conversations", {"before": "now"}),
    ("conversation", {}),
    ("conversation", {"conversation": ["a"]}),
    ("conversation", {"conversation": "a", "before": -1}),
    ("problems", {"days": 0}),
    ("problems", {"days": 1e3}),
    ("series", {}),
    ("series", {"range": "year"}),
    ("series", {"range": {"day": 1}}),
    ("series", {"range": "day", "by": "conversation"}),
    ("series", {"range": "day", "by": "1; DROP TABLE request"}),
    ("usage", {"days": 3}),
    ("usage", {"by": "purpose"}),
    ("usage", {"by": "day", "days": 367}),
    ("usage", {"by": "day", "days": True}),
]


async def test_what_commands_ask_for_has_a_name(page: Page) -> None:
    for name, field in NAMES.items():
        assert field in await page.call(name), name


async def test_a_field_that_does_not_fit_is_refused(page: Page) -> None:
    for name, body in WRONG:
        assert (await page.refused(name, body))[0] == 422, (name, body)


count = partial(read_count, name="f", default=7, most=9)
number = partial(read_number, name="f")
moment = partial(read_time, name="f")
flag = partial(read_flag, name="f")
choice = partial(read_choice, name="f", allowed=("a", "b"))
optional = partial(choice, default="")
text = partial(read_text, name="f", longest=4)
texts = partial(read_texts, name="f", most=2, longest=4)


@pytest.mark.parametrize(
    ("read", "body", "value"),
    [
        (count, {}, 7),
        (count, {"f": 9}, 9),
        (number, {}, None),
        (number, {"f": 0}, 0),
        (moment, {}, None),
        (moment, {"f": 5}, 5.0),
        (moment, {"f": None}, None),
        (flag, {}, False),
        (flag, {"f": True}, True),
        (choice, {"f": "b"}, "b"),
        (optional, {}, ""),
        (optional, {"f": None}, ""),
        (text, {}, ""),
        (text, {"f": "漢字"}, "漢字"),
        (text, {"f": "\ud800"}, "?"),
        (texts, {}, []),
        (texts, {"f": ["a", ""]}, ["a", ""]),
    ],
)
def test_a_field_is_read(read: Callable[..., Any], body: Any, value: Any) -> None:
    assert read(body) == value


@pytest.mark.parametrize(
    ("read", "values"),
    [
        (count, [0, 10, -1, 1.0, "3", True, None, [], 2**70]),
        (number, [-1, 2**70, 1.5, "1", True, [], {}]),
        (moment, [-1, 1e30, float("nan"), float("inf"), "1", True, []]),
        (flag, [0, 1, "true", None, []]),
        (choice, ["c", "", "A", None, 1, [], {}, ["a"]]),
        (optional, ["c", "", 0, False, [], {}]),
        (text, ["fives", 1, None, [], {}]),
        (texts, ["a", None, ["a", "b", "c"], ["fives"], [1], {}]),
    ],
    ids=["count", "number", "time", "flag", "choice", "optional", "text", "texts"],
)
def test_what_a_field_may_not_be_is_refused(
    read: Callable[..., Any], values: list[Any]
) -> None:
    for value in values:
        with pytest.raises(BadRequest, match=r"^f must be") as caught:
            read({"f": value})
        assert caught.value.status == 422


def test_a_text_that_says_nothing_is_refused() -> None:
    assert refuse_empty("f", "a ") == "a "
    for value in ("", " \n"):
        with pytest.raises(BadRequest, match="f must be"):
            refuse_empty("f", value)
