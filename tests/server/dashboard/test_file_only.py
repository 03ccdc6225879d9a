"""The settings that are changed in the file only."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from byok.core.chat import Json
from byok.server.dashboard.editable import (
    FileSetting,
    describe_file_settings,
    file_settings,
    find_editable,
)
from byok.settings import make_settings

# A setting that only counts, or is only allowed, beside another one.
_BESIDE: dict[str, dict[str, Any]] = {
    "embeddings.upstream": {"embeddings": {"model": "m"}},
    "embeddings.team.url": {"embeddings": {"team": {"team": "t"}}},
    "routing.aliases": {"upstreams": {"groq": {}}},
}


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    joined: dict[str, Any] = {**one, **other}
    for name in one.keys() & other.keys():
        joined[name] = merged(one[name], other[name])
    return joined


def rows_for(given: dict[str, Any]) -> dict[str, Json]:
    return {row["name"]: row for row in describe_file_settings(given, "groq")}


def test_a_setting_is_changed_on_the_page_or_listed_there() -> None:
    listed = {row.name for row in file_settings()}
    assert {"network.proxy", "upstreams.NAME.key_names", "prompts"} <= listed
    assert find_editable(("chat", "temperature")) and "chat.temperature" not in listed
    assert "upstreams.NAME.base_url" not in listed


@pytest.mark.parametrize(
    "name",
    [
        *("api_key_cmd", "api_key_env", "headers", "extra_body", "query", "proxy"),
        *("ca_file", "allow_insecure_http"),
    ],
)
def test_what_runs_carries_or_weakens_is_for_the_file(name: str) -> None:
    assert f"upstreams.NAME.{name}" in {row.name for row in file_settings()}
    assert find_editable(("upstreams", "x", name)) is None


@pytest.mark.parametrize("row", file_settings(), ids=lambda row: row.name)
def test_the_lines_for_the_file_are_taken_and_say_more_than_nothing(
    row: FileSetting,
) -> None:
    text = "\n".join(row.lines("groq"))
    given = merged(tomllib.loads(text), _BESIDE.get(row.name, {}))
    make_settings(given, Path("f"), environ={})
    assert row.example not in ("", [], {}, False, None)


def test_a_line_stands_below_the_section_that_the_file_has() -> None:
    row = rows_for({"network": {"ca_file": "x"}})["network.proxy"]
    assert (row["section"], row["has_section"]) == ("[network]", True)
    assert not rows_for({})["network.proxy"]["has_section"]
    own = rows_for({"upstreams": {"groq": {}}})["upstreams.NAME.proxy"]
    assert (own["section"], own["has_section"]) == ("[upstreams.groq]", True)
    assert rows_for({"prompts": {"chat": "x"}})["prompts"]["has_section"]


def test_what_the_file_has_is_named_and_its_value_is_not() -> None:
    canary = "http://canary.example"
    given = {"upstreams": {"a": {"proxy": canary}, "b": 1, "c": {"proxy": canary}}}
    rows = rows_for(given)
    assert rows["upstreams.NAME.proxy"]["given"] == [
        "upstreams.a.proxy",
        "upstreams.c.proxy",
    ]
    assert not rows["network.proxy"]["given"]
    assert "canary" not in str(rows)
