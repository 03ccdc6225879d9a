"""The settings file as the page sees it."""

from pathlib import Path

import pytest

from byok.clients.editor import MISSING
from byok.core.platform.paths import find_paths
from byok.server.dashboard.editable import Change, Tables
from byok.server.dashboard.settings_page import SettingsPage
from byok.settings import Settings, make_settings
from tests.fakes.settings_daemon import write_settings

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
    "text", [f"a = {'[' * 20_000}{']' * 20_000}\n", f"{'.'.join('a' * 5000)} = 1\n"]
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
