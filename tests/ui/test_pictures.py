"""The pictures of the documentation are made by the code that tests use."""

import struct
from pathlib import Path

from playwright.async_api import Browser

from tools.dashboard_pictures import HEIGHT, list_pictures, make_pictures

_LARGEST = 150_000


def size_of(path: Path) -> tuple[int, int]:
    """Return width and height of a PNG."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:])
    return width, height


async def test_pictures_are_made(browser: Browser, tmp_path: Path) -> None:
    await make_pictures(browser, tmp_path)
    made = {path.stem: size_of(path) for path in tmp_path.glob("*.png")}
    assert made == {
        picture.name: (picture.width, HEIGHT) for picture in list_pictures()
    }
    sizes = {path.stem: path.stat().st_size for path in tmp_path.glob("*.png")}
    assert {name: size for name, size in sizes.items() if size > _LARGEST} == {}
