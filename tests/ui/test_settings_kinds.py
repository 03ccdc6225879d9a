"""Every kind of setting is saved as it was entered; what is shown is written."""

import difflib
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Page, expect

from byok.clients.settings_text import MISSING, find_value
from byok.core.platform.paths import find_paths
from tests.fakes.daemon import Editor, running_on_file, write_settings
from tests.fakes.dashboard import text_for
from tests.fakes.pages import control, open_panel, save, unfold
from tests.fakes.upstream import FakeUpstream

PROMPT = 'Be brief.\n"""Quotes""" \\ and 中文\n\tTab'
MODELS = ["byok:fake:a", "byok:fake:b"]
ADDRESS = "https://official.example"
# What is entered, and what the file has then.
ENTRIES = {
    "upstreams.fake.model": ("fast", "fast"),
    "upstreams.fake.timeout": ("0.5", 0.5),
    "chat.temperature": ("0", 0),
    "chat.max_tokens": ("1", 1),
    "chat.system_prompt": (PROMPT, PROMPT),
    "routing.default": ("byok:fake:fast", "byok:fake:fast"),
    "routing.fallback.chat": (
        "byok:fake:a\n\n byok:fake:b ",
        ["byok:fake:a", "byok:fake:b"],
    ),
    "routing.official.base_url": (
        "https://official.example",
        "https://official.example",
    ),
    "caps.usd_per_day": ("1000000000", 10**9),
    "loops.polling": ("one\ntwo", ["one", "two"]),
}
CHOICES = {
    "chat.effort": ("low", "low"),
    "completion.chat_input": ("on", True),
    "routing.official.account": ("official", "official"),
}


@pytest_asyncio.fixture(loop_scope="session")
async def editor(clean_environment: Path, fake: FakeUpstream) -> AsyncIterator[Editor]:
    """A daemon with a settings file whose lines end as on Windows, after a mark."""
    text = text_for(fake).replace("\n", "\r\n")
    write_settings(b"\xef\xbb\xbf" + text.encode())
    async with running_on_file() as started:
        yield started


async def save_as_shown(page: Page, file: Path, last: str) -> None:
    """Save, and check that exactly the lines that were shown have changed.

    `last` is one of the change that was made last.
    """
    before = file.read_bytes().decode("utf-8-sig").split("\r\n")
    lines = page.locator(".changes .lines")
    await expect(lines).to_contain_text(last)
    lines_shown = (await lines.text_content() or "").splitlines()
    await save(page)
    assert file.read_bytes().startswith(b"\xef\xbb\xbf# mine\r\n")
    after = file.read_bytes().decode("utf-8-sig").split("\r\n")
    rows = [*difflib.unified_diff(before[:-1], after[:-1], n=0, lineterm="")][2:]
    due = [f"{row[0]} {row[1:]}" for row in rows if not row.startswith("@@")]
    assert sorted(lines_shown) == sorted(due)


async def test_every_kind_of_setting_is_saved_and_unset(
    page: Page, editor: Editor, fake: FakeUpstream
) -> None:
    file = find_paths().config
    await open_panel(page, "settings")
    await unfold(page)
    retrieval = control(page, "chat.retrieval")
    await retrieval.uncheck()
    for name, (entry, _) in ENTRIES.items():
        await control(page, name).fill(entry)
    for name, (label, _) in CHOICES.items():
        await control(page, name).select_option(label=label)
    await save_as_shown(page, file, '+ account = "official"')
    for name, (_, due) in (ENTRIES | CHOICES).items():
        stored = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
        assert find_value(stored, tuple(name.split("."))) == due, name
    await editor.chat()
    assert (fake.requests[-1]["model"], fake.requests[-1]["max_tokens"]) == ("fast", 1)
    assert fake.requests[-1]["messages"][0]["content"].startswith(PROMPT)
    assert stored["chat"]["retrieval"] is False
    await retrieval.check()
    await unfold(page)
    for name in [*ENTRIES][1:]:
        await control(page, name).fill("")
    for name in CHOICES:
        await control(page, name).select_option(index=0)
    await save_as_shown(page, file, '- account = "official"')
    stored = tomllib.loads(file.read_bytes().decode("utf-8-sig"))
    for name in [*ENTRIES, *CHOICES][1:]:
        assert find_value(stored, tuple(name.split("."))) is MISSING, name
