"""The files of the page: which there are, and what they are sent as."""

import hashlib
from pathlib import Path
from zipfile import ZipFile

import pytest

from byok.server.dashboard.endpoint import static_files
from tests.fakes.program import build_wheel


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("app.js", "text/javascript; charset=utf-8"),
        ("style.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
        ("panels/overview.js", "text/javascript; charset=utf-8"),
        ("vendor/uPlot.iife.min.js", "text/javascript; charset=utf-8"),
        ("vendor/uPlot.LICENSE.txt", "text/plain; charset=utf-8"),
    ],
)
def test_a_file_has_its_type(name: str, kind: str) -> None:
    found = static_files()[name]
    assert found.kind == kind
    assert found.content


@pytest.mark.slow
def test_the_wheel_has_every_file_and_the_licence_of_the_charts(tmp_path: Path) -> None:
    with ZipFile(build_wheel(tmp_path)) as wheel:
        names = wheel.namelist()
    folder = "byok/server/dashboard/static/"
    assert {folder + name for name in static_files() if name} <= set(names)
    licences = [name for name in names if "/licenses/" in name]
    assert any(name.endswith("/LICENSE") for name in licences)
    assert any(name.endswith("/uPlot.LICENSE.txt") for name in licences)


def test_what_others_wrote_is_as_they_published_it() -> None:
    # npm's uplot 1.6.32: LICENSE, dist/uPlot.iife.min.js and dist/uPlot.min.css. A
    # newer version is taken as a whole, with its sums; nothing is changed here.
    files = static_files()
    assert b"(v1.6.32)" in files["vendor/uPlot.iife.min.js"].content[:400]
    sums = {
        name: hashlib.sha256(file.content).hexdigest()
        for name, file in files.items()
        if name.startswith("vendor/")
    }
    assert sums == {
        "vendor/uPlot.LICENSE.txt": (
            "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"
        ),
        "vendor/uPlot.iife.min.js": (
            "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
        ),
        "vendor/uPlot.min.css": (
            "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"
        ),
    }


def test_one_file_alone_knows_the_library_of_charts() -> None:
    knows = {
        name
        for name, file in static_files().items()
        if not name.startswith("vendor/") and b"uPlot" in file.content
    }
    assert knows - {""} == {"charts.js", "index.html"}
