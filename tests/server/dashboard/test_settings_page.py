"""The settings file as the page sees it: its form, and the lines of a change."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from byok.clients.settings_text import MISSING
from byok.core.platform.paths import find_paths
from byok.server.dashboard.editable import Change, Tables
from byok.server.dashboard.settings_page import (
    SettingsPage,
    SettingsState,
    changed_lines,
    make_form,
)
from byok.settings import Settings, make_settings
from tests.fakes.daemon import write_settings

TOP_P = ("chat", "top_p")


@pytest.fixture
def page() -> SettingsPage:
    file = find_paths().config

    def judge(given: Tables) -> Settings:
        return make_settings(given, file, environ={})

    return SettingsPage(file, find_paths(), judge, {}, str, lambda *_: [])


def test_lines_that_go_away_show_nothing_that_is_for_the_file(
    page: SettingsPage, tmp_path: Path
) -> None:
    write_settings(
        '[upstreams.a]\nmodel = "m"\nquery = { k = "secret-1" }\n'
        '[upstreams.a.headers]\nX = "secret-2"\nmodel = "b"\n'
    )
    lines = page.preview([Change(("upstreams", "b"), {})])["lines"]
    assert [row["sign"] for row in lines] == []
    assert "secret-" not in str(page.read(Settings()))


@pytest.mark.parametrize(
    "text", [f"a = {'[' * 20_000}{']' * 20_000}\n", f"{'.'.join('a' * 1500)} = 1\n"]
)
def test_a_file_that_is_nested_deeply_is_left(page: SettingsPage, text: str) -> None:
    file = write_settings(text)
    form = page.read(Settings())
    assert form["error"]
    (fault,) = page.write(form["revision"], [Change(TOP_P, 0.5)])
    assert "nested too deeply" in fault.message
    assert page.preview([Change(TOP_P, 0.5)])["errors"]
    assert file.read_text() == text


@pytest.mark.parametrize(
    "hidden",
    [
        'headers = { X-Team = "canary" }',
        '"headers" = { X-Team = "canary" }',
        'query.k = "canary"',
        'extra_body = { user = "canary" }',
        'extra_body = { user = "1\u2028canary" }',
        'api_key_cmd = ["pass", "canary"]',
        'proxy = "http://canary.example:3128"',
    ],
)
@pytest.mark.parametrize("name", ["own", "model"])
def test_what_stands_beside_a_change_on_its_line_is_not_shown(
    page: SettingsPage, name: str, hidden: str
) -> None:
    own = f'{{ base_url = "https://own.example/v1", {hidden}, model = "m" }}'
    write_settings(f"[upstreams]\n{name} = {own}\n")
    for value in ("z", MISSING):
        told = page.preview([Change(("upstreams", name, "model"), value)])
        assert told["errors"] == []
        assert told["lines"]
        assert "canary" not in str(told)


def test_words_of_a_prompt_are_shown(page: SettingsPage) -> None:
    text = "Answer the query. Mind headers."
    told = page.preview([Change(("chat", "system_prompt"), text)])
    assert told["lines"][-1]["line"] == f'system_prompt = "{text}"'


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
    assert [row["given"] for row in form["file_only"] if row["given"]] == [
        ["upstreams.groq.proxy"]
    ]
    assert "u:p" not in str(form)


SHOWN = [
    "[chat]",
    "temperature = 0.5 # not too wild",
    'effort = "low"',
    "[caps]",
    "usd_per_day = 5",
    "[routing.fallback]",
    "chat = [",
    '  "byok:a:b", # the best',
    "]",
    "[upstreams.a]",
    'base_url = "https://a.example/v1"',
    'system_prompt = """',
    "headers = none of them",
    '"""',
]
SECRET = "canary"


def redact(text: str) -> str:
    return text.replace("sk-live", "[redacted]")


def test_lines_of_settings_are_shown_as_they_are_written() -> None:
    text = "\n".join(SHOWN) + "\n"
    gone = [{"sign": "-", "line": line} for line in SHOWN]
    come = [{"sign": "+", "line": line} for line in SHOWN]
    assert changed_lines(text.encode(), b"", redact) == gone
    assert changed_lines(b"", text.encode(), redact) == come


def test_only_what_differs_is_given() -> None:
    old = "\n".join(SHOWN) + "\n"
    new = old.replace("0.5", "1").replace('"low"', '"high"').replace("= 5", "= 6")
    due = difflib.unified_diff(old.split("\n"), new.split("\n"), n=0, lineterm="")
    assert [
        row["sign"] + row["line"]
        for row in changed_lines(old.encode(), new.encode(), redact)
    ] == [line for line in [*due][2:] if not line.startswith("@@")]


@pytest.mark.parametrize(
    "line",
    [
        f"[upstreams.a]\nheaders = {{ X = '{SECRET}' }}",
        f"[upstreams.a.headers]\nmodel = '{SECRET}'",
        f"[upstreams]\na.query.k = '{SECRET}'",
        f"[upstreams]\na = {{ model = 'm', \"headers\" = {{ X = '{SECRET}' }} }}",
        f'[upstreams.a]\napi_key_cmd = ["pass",\n"model = 1 {SECRET}"]',
        f'[upstreams.a]\nextra_body.x = """\nmodel = "{SECRET}"\n"""',
        f"[upstreams.a]\nbase_url = 'https://me:{SECRET}@a.example/v1'",
        f"[upstreams.a]\nmodels = ['x://me:{SECRET}@a.example/v1']",
        f"[upstreams.a]\nmodel = 'sk-live-{SECRET}'",
        f"[network]\nproxy = 'http://{SECRET}.example:3128'",
        f"[[upstreams.a]]\nmodel = '{SECRET}'",
        f"# temperature = {SECRET}",
    ],
)
def test_what_the_page_hides_is_in_no_line(line: str) -> None:
    text = f"{line}\n".encode()
    kept = b"[chat]\ntop_p = 1\n"
    assert SECRET not in str(changed_lines(kept + text, kept, redact))
    assert SECRET not in str(changed_lines(kept, kept + text, redact))
