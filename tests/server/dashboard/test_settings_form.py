"""The settings as a form."""

from collections.abc import Mapping
from typing import Any

import pytest

from byok.server.dashboard.settings_page import SettingsState, make_form
from byok.settings import Settings

KEY = "sk-canary0123456789"


def form_of(given: Mapping[str, Any], **settings: Any) -> dict[str, Any]:
    state = SettingsState(
        Settings(**settings),
        given,
        {"tools": {"ask_again": 2}},
        {"server.port": "--port"},
        lambda text: text.replace(KEY, "[redacted]"),
    )
    return make_form(state)


def find(form: dict[str, Any], name: str) -> dict[str, Any]:
    rows = [
        row for part in form["groups"] + form["upstreams"] for row in part["fields"]
    ]
    (found,) = [row for row in rows if ".".join(row["path"]) == name]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("given", "due"),
    [
        (1, {"given": 1}),
        (0.5, {"given": 0.5}),
        (True, {"given": True}),
        ("<b>\u202e", {"given": "<b>\u202e"}),
        (["a"], {"given": ["a"]}),
        (float("nan"), {"given": "float", "odd": True}),
        (float("inf"), {"given": "float", "odd": True}),
        (2**60, {"given": "int", "odd": True}),
        ({"x": KEY}, {"given": "dict", "odd": True}),
        ([1], {"given": "list", "odd": True}),
        ("x" * 20_001, {"given": "str", "odd": True}),
        (f"a {KEY}", {"given": "", "locked": True}),
        ([KEY], {"given": [], "locked": True}),
        ("https://u:p@host/v1", {"given": "", "locked": True}),
        ("mail a@b.example or https://host/x@y", {
            "given": "mail a@b.example or https://host/x@y"}),
    ],
)  # fmt: skip
def test_a_value_of_the_file_is_shown_if_it_can_be(
    given: Any, due: dict[str, Any]
) -> None:
    found = find(form_of({"chat": {"system_prompt": given}}), "chat.system_prompt")
    assert {
        key: found[key] for key in ("given", "odd", "locked") if key in found
    } == due


def test_whoever_outranks_the_file_is_named() -> None:
    form = form_of({})
    assert find(form, "server.port")["fixed"] == "--port"
    assert find(form, "tools.ask_again")["fixed"] == "BYOK_*"
    assert "fixed" not in find(form, "chat.top_p")
    assert find(form, "server.port")["restart"]
    assert not find(form, "chat.top_p")["restart"]


def test_upstreams_of_the_file_and_those_in_force_are_shown() -> None:
    form = form_of(
        {"upstreams": {"broken": 1, "groq": {"model": "m", "proxy": "http://u:p@h"}}},
        upstreams={"groq": {"model": "n"}, "demo": {}},
    )
    assert [(u["name"], u["in_file"]) for u in form["upstreams"]] == [
        ("broken", True),
        ("groq", True),
        ("demo", False),
    ]
    found = find(form, "upstreams.groq.model")
    assert (found["given"], found["value"]) == ("m", "n")
    assert find(form, "upstreams.groq.type")["value"] == "groq"
    assert form["hidden"] == [["upstreams", "groq", "proxy"]]
    assert "u:p" not in str(form)
