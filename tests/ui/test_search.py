"""Code search: what an agent would get, shown as it is, whatever stands in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Page, expect

from tests.fakes.daemon import Editor, running
from tests.fakes.dashboard import signed_in
from tests.fakes.engines import written
from tests.fakes.pages import Watch, axe, open_panel
from tests.fakes.patience import PATIENCE, until

HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.py"
FILES = {
    "oven.py": "import math\n\n\ndef preheat_oven(degrees):\n    return degrees\n",
    HOSTILE: "hostile = '</pre><script>alert(1)</script>\x1b[31m\u202e'\n",
    "long.py": f"endless_line = '{'x' * 380}'\n",
    ".gitignore": "*.log\n",
    "logs/preheated_oven.log": "hot\n",
    "登录.py": "# 检查用户的令牌\ncheck_user_token = 1\n",
}


@pytest_asyncio.fixture(loop_scope="session")
async def editor(clean_environment: Path, tmp_path: Path) -> AsyncIterator[Editor]:
    """A daemon that has indexed a project."""
    root = written(tmp_path / "project", FILES)
    async with running(upstream="demo") as started:
        asking = await signed_in(started)
        await asking.call("index-add", {"root": str(root)})

        async def is_complete() -> bool:
            [space] = (await asking.call("index"))["workspaces"]
            return bool(space["phase"] == "complete")

        await until(is_complete, 30)
        yield started


async def ask(page: Page, question: str) -> None:
    """Ask a question, and wait for its answer."""
    await open_panel(page, "search")
    field = page.get_by_label("Question")
    await field.fill(question)
    await field.press("Enter")
    await expect(page.locator(".search .summary")).to_contain_text("found in")


async def test_any_question_is_answered_with_files_and_what_an_agent_gets(
    page: Page, editor: Editor
) -> None:
    await open_panel(page, "search")
    await expect(page.get_by_text("Ask as an agent does")).to_be_visible()
    path = page.get_by_label("Name or path")
    await path.fill("oven.py")
    await path.press("Enter")
    await expect(page.get_by_role("status").filter(has_text="oven.py")).to_contain_text(
        "indexed"
    )
    await ask(page, "where is the oven preheated")
    first = page.locator(".hits > li").first
    await expect(first.locator("h2")).to_have_text("oven.py")
    await expect(first.locator(".tag").first).to_have_text("project")
    await first.get_by_text("Why this file").click()
    await expect(first.get_by_text("= words")).to_be_visible()
    assert await axe(page) == ""
    skipped = page.locator("details", has_text="logs/preheated_oven.log")
    await skipped.locator("summary").click()
    await expect(skipped).to_contain_text("*.log in .gitignore, line 1")
    matching = first.locator(".line.match")
    await expect(matching.first).to_contain_text("▸ 4 def preheat_oven(degrees):")
    assert page.url.endswith("#/search")  # which keeps no question
    await page.get_by_text("Search words").click()
    await expect(page.locator(".terms")).to_contain_text("oven")
    question = "preheat oven"
    text = ""

    async def agent_gets_the_same() -> bool:  # but while new files are looked at again
        nonlocal text
        await ask(page, question)
        await page.get_by_role("button", name="Show", exact=True).click()
        answer = page.locator("pre.answer")
        await expect(answer).to_contain_text("preheat_oven")
        body = {"information_request": question}
        tool = await editor.post("/agents/codebase-retrieval", body)
        text = tool.json["formatted_retrieval"]
        return bool(await answer.inner_text() == text)

    await until(agent_gets_the_same, PATIENCE)
    await expect(page.get_by_text(f"{len(text):,} characters")).to_be_visible()
    await ask(page, "hostile")
    await expect(first.locator("h2")).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(first.locator("h2")).to_contain_text("\\u202egnp.py")
    await expect(first).to_contain_text("<script>alert(1)</script>\\x1b[31m\\u202e")
    await page.get_by_label("Question").fill("")
    await expect(page.get_by_text("Ask as an agent does")).to_be_visible()
    await ask(page, "在哪里检查用户的令牌")
    await expect(page.locator(".hits h2").first).to_have_text("登录.py")
    await ask(page, "endless line " * 154)
    await expect(page.locator(".hits h2").first).to_have_text("long.py")
    await page.set_viewport_size({"width": 360, "height": 900})
    wider = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).length"
    assert await page.locator(".lines").evaluate_all(wider) == 0
    await ask(page, "the \u202e of")
    await expect(page.get_by_text("No file matches.")).to_be_visible()


async def test_back_leads_to_the_question_its_filters_and_its_answer(
    page: Page, watch: Watch
) -> None:
    await open_panel(page, "search")
    await page.get_by_label("Folder", exact=True).select_option("project")
    await page.get_by_label("Maximum files").select_option("20")
    await ask(page, "where is the oven preheated")
    await expect(page.locator(".hits h2").first).to_have_text("oven.py")
    await open_panel(page, "index")
    await watch.take(page)
    await page.go_back()
    await expect(page.locator(".hits h2").first).to_have_text("oven.py")
    question = page.get_by_label("Question")
    await expect(question).to_have_value("where is the oven preheated")
    limit = page.get_by_label("Maximum files")
    await expect(limit).to_have_value("20")
    folder = page.get_by_label("Folder", exact=True)
    await expect(folder.locator("option:checked")).to_have_text("project")
    await expect(page.get_by_text("logs/preheated_oven.log")).to_be_visible()
    requests = await watch.take(page)  # it costs nothing again
    assert not [line for line in requests if line.startswith("POST /ui/api/search")]
    await page.locator("#language").select_option("zh")
    await expect(page.locator(".hits h2").first).to_have_text("oven.py")
    await page.reload()
    await expect(page.locator("#search-query")).to_have_value("")
