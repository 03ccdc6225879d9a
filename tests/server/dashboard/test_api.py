"""What the page may ask for: names of what commands ask for too, and exact fields."""

from typing import Any

from tests.fakes.dashboard import Page

NAMES = {
    "daemon": "model",
    "catalog": "models",
    "keys": "keys",
    "index": "workspaces",
}
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": " \n"}),
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
    ("conversations", {"count": 0}),
    ("conversations", {"offset": -1}),
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
