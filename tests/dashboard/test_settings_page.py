"""The settings file as the page sees it."""

from pathlib import Path

import pytest

from byok.config import Settings, parse_settings
from byok.dashboard.settings_change import Change
from byok.dashboard.settings_page import SettingsPage
from byok.errors import BadRequest
from byok.platform.paths import find_paths
from tests.fakes.settings_daemon import write_settings

TOP_P = ("chat", "top_p")


@pytest.fixture
def page() -> SettingsPage:
    file = find_paths().config

    def judge(raw: bytes) -> Settings:
        return parse_settings(raw, file, environ={})

    return SettingsPage(
        file, find_paths(), judge, {}, lambda path: False, str, lambda *_: []
    )


def test_a_file_is_read_tried_and_written(page: SettingsPage) -> None:
    assert page.read(Settings())["revision"] == ""
    assert page.write("", [Change(TOP_P, 0.5)]) == []
    form = page.read(Settings())
    assert (form["exists"], form["blocked"], form["error"]) == (True, "", "")
    told = page.preview([Change(TOP_P, 1)])
    assert told["lines"] == [
        {"sign": "-", "line": "top_p = 0.5"},
        {"sign": "+", "line": "top_p = 1"},
    ]
    assert page.preview([Change(TOP_P, 7)])["lines"] == []
    (fault,) = page.write(form["revision"], [Change(TOP_P, 7)])
    assert fault.path == TOP_P
    with pytest.raises(BadRequest, match="changed meanwhile"):
        page.write("", [Change(TOP_P, 1)])


def test_lines_that_go_away_show_nothing_that_is_for_the_file(
    page: SettingsPage, tmp_path: Path
) -> None:
    write_settings(
        '[upstreams.a]\nmodel = "m"\nquery = { k = "secret-1" }\n'
        '[upstreams.a.headers]\nX = "secret-2"\nmodel = "b"\n'
    )
    lines = page.preview([Change(("upstreams", "b"), {})])["lines"]
    assert [row["sign"] for row in lines] == []
    assert "secret" not in str(page.read(Settings()))
