"""The pictures of the documentation are made by the code that tests use."""

import struct
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tools.dashboard_pictures import (
    HEIGHT,
    IMAGES,
    Picture,
    list_pictures,
    make_pictures,
)

_LARGEST = 160_000  # bytes
_PAGES = "".join(
    (IMAGES.parent / name).read_text("utf-8")
    for name in ("reference/dashboard.md", "zh/README.md")
)


def size_of(path: Path) -> tuple[int, int]:
    """Return width and height of a PNG."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:])
    return width, height


async def test_pictures_are_made(browser: Browser, tmp_path: Path) -> None:
    pictures = [one for one in list_pictures() if one.name == "dashboard-search"]
    await make_pictures(browser, tmp_path, pictures)
    sizes = {path.stem: size_of(path) for path in tmp_path.glob("*.png")}
    assert sizes == {picture.name: (picture.width, HEIGHT) for picture in pictures}
    assert max(path.stat().st_size for path in tmp_path.iterdir()) <= _LARGEST


@pytest.mark.parametrize("picture", list_pictures(), ids=lambda picture: picture.name)
def test_the_documentation_has_the_picture(picture: Picture) -> None:
    """`python -m tools.dashboard_pictures` makes it; look at it before you commit."""
    path = IMAGES / f"{picture.name}.png"
    assert size_of(path) == (picture.width, HEIGHT)
    assert path.stat().st_size <= _LARGEST
    assert f"images/{path.name}" in _PAGES


def test_no_other_picture_is_left() -> None:
    expected = {f"{picture.name}.png" for picture in list_pictures()}
    assert {path.name for path in IMAGES.glob("dashboard*.png")} == expected
