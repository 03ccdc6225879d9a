"""Text of strangers, in every place where a panel may show it, stays text."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from byok.core.platform.paths import find_paths
from tests.fakes.daemon import Editor, running
from tests.fakes.furnished import ENVIRON, UPSTREAMS, furnish
from tests.fakes.journal_entries import NOW, entry, write_journal
from tests.fakes.pages import open_panel, read_panels, settle, sign_in, visiting
from tests.fakes.upstream import FakeUpstream, Script, delta, refusal, tool_answer

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "javascript:alert(1)",
    "\x1b]8;;http://example.org\x07\x1b[31mred\x1b[0m",
    "photo\u202egpj.exe",
    "W" * 10_000,
    "שלום־עולם" * 55,  # from right to left, and nothing that breaks it
    "नमस्ते👩‍👩‍👧Z̸̢̛a̷l̶g̵o̴" * 20,
    "{name} ${name} `",
)
# The fields of an entry that somebody else's text may reach.
_FIELDS = (
    *("client", "conversation", "endpoint", "purpose", "model_asked", "model"),
    *("upstream", "prompt", "error", "error_class", "tool_calls", "loop"),
    "prompt_change",
)
_OPEN = """() => {
  for (const closed of document.querySelectorAll("main details")) closed.open = true;
}"""
# What of a dialog is wider than it.
_CUT = """() => [...document.querySelectorAll("dialog, dialog > *")]
  .filter((found) => found.scrollWidth > found.clientWidth + 1)
  .map((found) => found.outerHTML.slice(0, 200))"""
_ELEMENTS = (
    "main :is(img, script, iframe, object, embed, base, form[action], "
    "a:not([href^='#/']), [onerror], [srcdoc], [style*='url'])"
)


def hostile_journal(path: Path, now: float) -> None:
    """Write a request for each text, in all fields, as a model and a client choose."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    entries = [
        entry(
            started=now - 100 + number,
            outcome=outcome,
            repairs=1,
            dropped_calls=1,
            notices=1,
            **dict.fromkeys(_FIELDS, text),
        )
        for number, text in enumerate(HOSTILE)
        for outcome in ("ok", "failed")
    ]
    write_journal(path, entries)


def hostile_project(root: Path) -> Path:
    """Write a workspace with such names; it cannot be made on Windows."""
    folder = root / HOSTILE[0] / HOSTILE[-3][:110]
    (folder / ".git").mkdir(parents=True)
    for text in HOSTILE:
        name = text.replace("/", "~")[:60]
        code = f"def oven():\n    return {text[:99]!r}\n"
        (folder / f"{name}.py").write_text(code, "utf-8")
        (folder / f"{name}.bin").write_bytes(bytes(99))
        (folder / f"{name}.pem").write_text("key")
    return folder


@pytest_asyncio.fixture(loop_scope="session")
async def editor(tmp_path: Path, fake: FakeUpstream) -> AsyncIterator[Editor]:
    paths = find_paths()
    urls = dict.fromkeys(UPSTREAMS, fake.url)
    furnish(paths, urls, NOW, hostile_project(tmp_path / "place"))
    paths.journal.unlink()
    hostile_journal(paths.journal, NOW)
    fake.models = [text[:500] for text in HOSTILE]
    async with running(clock=lambda: NOW, environ=ENVIRON) as started:
        for text in HOSTILE:
            fake.play(tool_answer(text, '{"path": "x"}'), refusal(400, text))
            agent = "".join(letter for letter in text if letter.isprintable())
            cut = text[:500]
            body = {"message": text, "conversation_id": cut, "model": cut}
            for _ in range(2):
                await started.post("/chat-stream", body, headers={"User-Agent": agent})
        fake.play(Script([delta(content=HOSTILE[0])], end="hang"))
        chat = asyncio.ensure_future(
            started.post("/chat-stream", {"message": "", "conversation_id": HOSTILE[1]})
        )
        text = paths.config.read_text("utf-8")
        wrong = f"chat.temperature = {json.dumps(HOSTILE[0])}\n"
        paths.config.write_text(wrong + text, "utf-8")
        yield started
        chat.cancel()
        await asyncio.gather(chat, return_exceptions=True)


async def check(page: Page, where: str) -> str:
    """Nothing was made of a text but text; return what is shown."""
    assert await page.locator(_ELEMENTS).count() == 0, where
    wide = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide <= 0, where
    text = await page.locator("main").inner_text()
    assert not {"\x1b", "\x07", "\u202e"} & {*text}, where
    return text


@pytest.mark.case("B79")
async def test_text_of_strangers_stays_text(browser: Browser, editor: Editor) -> None:
    url = editor.daemon.url
    async with visiting(browser, url, width=360) as (context, watch):
        watch.allow("422 /ui/api/", "404 /ui/api/")  # an address of a stranger's
        page = await context.new_page()
        await sign_in(page, url)
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        followed: set[str] = set()
        for panel in read_panels():
            await open_panel(page, panel)
            await use(page, panel)
            shown = await check(page, panel)
            links = await page.locator("main a[href^='#/']").evaluate_all(
                "(all) => [...new Set(all.map((one) => one.getAttribute('href')))]"
            )
            valid = {link for link in links if link.split("/")[1] in read_panels()}
            for link in sorted(valid - followed)[:20]:
                followed.add(link)
                await page.evaluate("(to) => { location.hash = to; }", link)
                await settle(page)
                shown += await check(page, link)
            await page.evaluate(_OPEN)
            await settle(page)
            shown += await check(page, panel)
            for name in await page.locator("td.lead button.link").all():
                await name.click()
                assert await page.evaluate(_CUT) == [], (panel, await name.inner_text())
                await page.keyboard.press("Escape")
            assert "<img src=x" in shown or panel not in _SHOWS_THEM, panel
            for text in (HOSTILE[0], HOSTILE[3], HOSTILE[5]):
                to = f"#/{panel}/{text}/{text}"
                await page.evaluate("(to) => { location.hash = to; }", to)
                await page.wait_for_timeout(20)
            await settle(page)
            await check(page, panel)
        first = page.locator(f"#nav a[href='#/{read_panels()[0]}']")
        for address in ("nowhere", "..%2f..", "%E0%A4%A", "__proto__", "constructor/x"):
            await page.evaluate("(to) => { location.hash = `#/${to}`; }", address)
            await expect(first).to_have_attribute("aria-current", "page")
        assert dialogs == []


# Panels in which some of it must be seen, so that the test shows something.
_SHOWS_THEM = ("conversations", "problems", "live", "index", "settings")


async def use(page: Page, panel: str) -> None:
    """Do what makes a panel show more."""
    if panel == "search":
        await page.locator("#search-query").fill("oven")
        await page.locator("#search-query").press("Enter")
        await settle(page)
    if panel == "live":
        for row in await page.locator("main td button").all():
            if "<img" not in await page.locator("main").inner_text():
                await row.click()
                await settle(page)
