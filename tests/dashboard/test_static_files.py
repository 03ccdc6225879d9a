"""The files of the page: which there are, and what they are sent as."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from byok.dashboard.static_files import static_files
from tests.fakes.wheel import build_wheel


def test_the_start_page_has_no_name() -> None:
    files = static_files()
    assert files[""] == files["index.html"]
    assert files[""].kind == "text/html; charset=utf-8"
    assert files[""].content.startswith(b"<!doctype html>")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("app.js", "text/javascript; charset=utf-8"),
        ("style.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
        ("panels/overview.js", "text/javascript; charset=utf-8"),
        ("vendor/uPlot.esm.js", "text/javascript; charset=utf-8"),
        ("vendor/uPlot.LICENSE.txt", "text/plain; charset=utf-8"),
    ],
)
def test_a_file_has_its_type(name: str, kind: str) -> None:
    found = static_files()[name]
    assert found.kind == kind
    assert found.content


def test_only_files_of_the_page_are_served() -> None:
    assert not [name for name in static_files() if name.startswith(("/", "."))]
    assert not [name for name in static_files() if ".." in name or name.endswith(".py")]


@pytest.mark.slow
def test_the_wheel_has_every_file_and_the_licence_of_the_charts(tmp_path: Path) -> None:
    with ZipFile(build_wheel(tmp_path)) as wheel:
        names = wheel.namelist()
    folder = "byok/dashboard/static/"
    assert {folder + name for name in static_files() if name} <= set(names)
    licences = [name for name in names if "/licenses/" in name]
    assert any(name.endswith("/LICENSE") for name in licences)
    assert any(name.endswith("/uPlot.LICENSE.txt") for name in licences)
