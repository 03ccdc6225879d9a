"""Write docs/images/dashboard-*.png anew: `python -m tools.dashboard_pictures`.

The system's Chromium renders the page of a daemon with two weeks of made-up history, a
small workspace, and requests in progress. Look at the pictures before you commit them.
"""

import argparse
import asyncio
import base64
import os
import struct
import sys
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeAlias

from playwright.async_api import Browser, Page

from byok.core.platform.installation import find_command
from byok.core.platform.paths import find_paths
from tests.fakes.daemon import Editor, running
from tests.fakes.dashboard import signed_in
from tests.fakes.furnished import ENVIRON, UPSTREAMS, furnish, history, make_bakery
from tests.fakes.pages import (
    Language,
    Theme,
    browsing,
    open_panel,
    read_panels,
    settle,
    sign_in,
    visiting,
)
from tests.fakes.upstream import (
    DONE,
    FakeUpstream,
    Script,
    delta,
    event,
    refusal,
    tool_answer,
)

IMAGES = Path(__file__).parent.parent / "docs" / "images"
HEIGHT = 760
# Pairs of a text that differs each time, and the text that is shown instead.
Mask: TypeAlias = list[tuple[str, str]]
_MASKED_FOLDER = "/home/ana"
_MASKED_URL = "http://127.0.0.1:8765"
_MASKED_URLS = {
    "openrouter": "https://openrouter.ai/api/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "ollama": "http://127.0.0.1:11434/v1",
}
_MORE_MODELS = {
    "openrouter": ["google/gemini-2.5-flash", "openai/gpt-5.1"],
    "deepseek": ["deepseek-reasoner"],
    "ollama": ["qwen2.5-coder:7b"],
}
_QUESTIONS = ("Why is the oven cold?", "Add a test for till.py", "Explain orders.ts")
_PIECES = [delta(content="The oven is cold because nobody heated it. ")] * 12
_DRIPPING: list[bytes | float] = [*_PIECES, *(0.2, _PIECES[0]) * 500]
_USAGE = {"prompt_tokens": 18_231, "completion_tokens": 412}
_USED: list[bytes] = [event({"choices": [], "usage": _USAGE}), DONE]
_ENDED = [
    Script([*_PIECES, 0.6, delta("stop"), *_USED]),
    Script([*tool_answer("view", '{"path": "bakery/oven.py"}')[:-1], *_USED]),
    refusal(400, "This model does not know the parameter top_k."),
]
# JavaScript that replaces texts in the page and its fields.
_MASK = """(pairs) => {
  const change = (text) => pairs.reduce((now, [a, b]) => now.replaceAll(a, b), text);
  for (const broken of document.querySelectorAll(":has(> wbr)")) {
    const changed = change(broken.textContent);
    if (changed !== broken.textContent) broken.textContent = changed;
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const changed = change(walker.currentNode.data);
    if (changed !== walker.currentNode.data) walker.currentNode.data = changed;
  }
  for (const field of document.querySelectorAll("input, textarea")) {
    const changed = change(field.value);
    if (changed !== field.value) field.value = changed;
  }
}"""
# JavaScript that returns the pixels of a picture.
_POINTS = """async (shot) => {
  const read = await fetch(`data:image/png;base64,${shot}`);
  const image = await createImageBitmap(await read.blob());
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const { data } = canvas.getImageData(0, 0, image.width, image.height);
  let text = "";
  for (const byte of data) text += String.fromCharCode(byte);
  return btoa(text);
}"""


class Picture(NamedTuple):
    """One picture: its file, the panel's address, and the settings of the browser."""

    name: str
    address: str
    width: int = 1280
    theme: Theme = "light"
    language: Language = "en"


def list_pictures() -> list[Picture]:
    """Return the pictures of each panel, of some also dark, narrow or in Chinese."""
    panels = read_panels()
    pictures = [Picture(f"dashboard-{panel}", panel) for panel in panels]
    pictures.append(Picture("dashboard-conversation", f"conversations/{_longest()}"))
    pictures.append(Picture("dashboard-dark", panels[0], theme="dark"))
    pictures.append(Picture("dashboard-narrow", panels[0], width=360))
    pictures.append(Picture("dashboard-zh", "usage", language="zh"))
    return pictures


def _longest() -> str:
    """Return the conversation with the most turns."""
    names = Counter(row.conversation for row in history(0) if row.conversation)
    return names.most_common(1)[0][0]


async def make_pictures(
    browser: Browser, folder: Path, pictures: Sequence[Picture]
) -> None:
    """Write pictures; BYOK_HOME must name an empty folder."""
    folder.mkdir(parents=True, exist_ok=True)
    root = find_paths().state_dir.parent.parent
    async with _running_daemon(root) as (editor, mask):
        for picture in pictures:
            await _render(browser, editor, mask, folder, picture)


@asynccontextmanager
async def _running_daemon(root: Path) -> AsyncIterator[tuple[Editor, Mask]]:
    """Run a daemon with a history, some answered requests and some in progress."""
    async with AsyncExitStack() as opened:
        fakes = {name: FakeUpstream() for name in UPSTREAMS}
        for name, fake in fakes.items():
            await opened.enter_async_context(fake)
            fake.models = [UPSTREAMS[name], *_MORE_MODELS.get(name, ())]
        urls = {name: fake.url for name, fake in fakes.items()}
        furnish(find_paths(), urls, time.time(), make_bakery(root / "bakery"))
        first = next(iter(fakes.values()))
        editor = await opened.enter_async_context(running(environ=ENVIRON))
        asker = await signed_in(editor)  # streams are measured while a page is open
        await opened.enter_async_context(asker.opened("live", background=True))
        first.play(*_ENDED, Script(_DRIPPING))
        for number in range(len(_ENDED)):
            await _ask(editor, number, "Is the oven hot?")
        asking = [
            asyncio.ensure_future(_ask(editor, number, question))
            for number, question in enumerate(_QUESTIONS)
        ]
        while first.open < len(asking) or not await _is_indexed(editor):
            await asyncio.sleep(0.02)
        mask = [(find_command(), "byok"), (str(root), _MASKED_FOLDER)]
        mask += [(editor.daemon.url, _MASKED_URL)]
        mask += [(url, _MASKED_URLS[name]) for name, url in urls.items()]
        yield editor, mask
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


async def _is_indexed(editor: Editor) -> bool:
    status = (await editor.post("/byok/index/status")).json
    return all(space["phase"] == "complete" for space in status["workspaces"])


async def _ask(editor: Editor, number: int, question: str) -> None:
    body = {"message": question, "conversation_id": f"c0ffee{number}"}
    client = {"User-Agent": f"Augment.vscode-augment/0.60{number}.0"}
    await editor.post("/chat-stream", body, headers=client)


async def _render(
    browser: Browser, editor: Editor, mask: Mask, folder: Path, picture: Picture
) -> None:
    url = editor.daemon.url
    visit = visiting(
        browser,
        url,
        width=picture.width,
        height=HEIGHT,
        theme=picture.theme,
        language=picture.language,
    )
    async with visit as (context, _):
        page = await context.new_page()
        await sign_in(page, url)
        await open_panel(page, picture.address)
        await _show_content(page, picture.address)
        await page.evaluate("document.activeElement.blur()")
        await page.evaluate(_MASK, [list(pair) for pair in mask])
        shot = base64.b64encode(await page.screenshot(animations="disabled"))
        await page.goto("about:blank")
        points = bytearray(
            base64.b64decode(await page.evaluate(_POINTS, shot.decode()))
        )
        path = folder / f"{picture.name}.png"
        path.write_bytes(_pack(points, picture.width, HEIGHT))


def _pack(points: bytearray, width: int, height: int) -> bytes:
    """Return a PNG of RGBA pixels, without the alpha channel.

    Rows are not filtered as browsers do it, which makes flat pictures a fifth larger.
    """
    del points[3::4]
    size = 3 * width
    rows = (points[start : start + size] for start in range(0, len(points), size))
    content = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [b"\x89PNG\r\n\x1a\n"]
    for name, part in ((b"IHDR", head), (b"IDAT", content), (b"IEND", b"")):
        length, chunk = struct.pack(">I", len(part)), name + part
        parts += [length, chunk, struct.pack(">I", zlib.crc32(chunk))]
    return b"".join(parts)


async def _show_content(page: Page, panel: str) -> None:
    """Use the panel so that the picture shows its content."""
    if panel == "search":
        await page.locator("#search-query").fill("Where is the oven heated?")
        await page.locator("#search-query").press("Enter")
        await page.locator(".hits").wait_for()
    if panel == "index":
        await page.locator("main summary").first.click()
        await page.locator("main details[open] button").first.click()
        await settle(page)
    if panel in ("live", "usage"):
        await page.wait_for_timeout(1500)  # charts are drawn in a later frame


async def _run(folder: Path) -> None:
    with TemporaryDirectory(prefix="byok-pictures-") as place:
        os.environ["BYOK_HOME"] = str(Path(place) / "home")
        os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
        async with browsing() as browser:
            await make_pictures(browser, folder, list_pictures())


def main(argv: list[str]) -> int:
    """Write the pictures and say how large they are."""
    parser = argparse.ArgumentParser(prog="python -m tools.dashboard_pictures")
    parser.add_argument("--folder", type=Path, default=IMAGES)
    folder: Path = parser.parse_args(argv).folder
    asyncio.run(_run(folder))
    for path in sorted(folder.glob("dashboard*.png")):
        print(f"{path.stat().st_size / 1000:6.1f} kB  {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
