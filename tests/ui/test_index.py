"""The index: folders come and go, and what is left out has a reason."""

from pathlib import Path

from playwright.async_api import Page, expect

from tests.fakes.engines import written
from tests.fakes.pages import Watch, axe, open_panel
from tests.fakes.pages import field as field_of

HOSTILE = "<img src=x>\u202egol.log"
FILES = {
    "a.py": "x = 1\n",
    "shop/b.py": "y = 2\n",
    "e.bin": "\0",
    "one/same.txt": "z",
    "two/same.txt": "z",
    ".gitignore": "*.log\n",
    HOSTILE: "x",
    **{f"many/{n:03}.log": "x" for n in range(120)},
}


async def add(page: Page, root: Path) -> None:
    """Add a folder by the panel, and wait until it is indexed."""
    await open_panel(page, "index")
    await page.get_by_label("Folder to index").fill(str(root))
    await page.get_by_role("button", name="Add").click()
    await expect(page.get_by_role("heading", name=str(root))).to_be_visible()
    await expect(page.get_by_text("6 files")).to_be_visible()
    await expect(page.get_by_text("up to date")).to_have_count(2)  # it, and all


async def test_a_folder_is_explained_and_removed_after_a_second_click(
    page: Page, tmp_path: Path
) -> None:
    root = written(tmp_path / "project", FILES)
    await add(page, root)
    await page.locator("summary").first.click()
    table = page.get_by_role("region", name="Skipped files")
    await expect(table.locator("tbody tr")).to_have_count(2)
    await expect(table).to_contain_text("excluded by a rule")
    await page.get_by_role("button", name="List: excluded by a rule").click()
    title = page.get_by_role("heading", name=": 1 to 100 of 121")
    await expect(title).to_be_focused()
    await expect(page.locator(".paths")).to_contain_text("<img src=x>\\u202egol.log")
    await page.get_by_role("button", name="Next").click()
    await expect(page.locator(".paths li")).to_have_count(21)
    await expect(page.get_by_role("button", name="Next")).to_be_disabled()
    await page.get_by_role("button", name="List: not a text file").click()
    short = page.get_by_role("heading", name="not a text file: 1", exact=True)
    await expect(short).to_be_focused()
    await page.get_by_role("button", name="List: excluded by a rule").click()
    await page.get_by_role("button", name="Next").click()
    last = page.locator(".paths li").last
    await last.locator("summary").click()
    await expect(last).to_contain_text("*.log in .gitignore, line 1")
    assert await axe(page) == ""
    field = page.get_by_label("Name or path")
    for path, answer in (
        ("a.py", "exists"),
        ("many/001.log", "*.log in .gitignore, line 1"),
        ("e.bin", "not a text file"),
        ("id_rsa", "To index it"),
    ):
        await field.fill(path)
        await field.press("Enter")
        explanation = page.get_by_role("status").filter(has_text=path)
        await expect(explanation).to_contain_text(answer)
    for path, text in (
        ("b.py", root / "shop/b.py"),
        ("001.log", root / "many/001.log"),
    ):
        await field.fill(path)  # of one file, so it is told at once
        await field.press("Enter")
        await expect(
            page.get_by_role("status").filter(has_text=str(text))
        ).to_be_visible()
    await field.fill("same.txt")
    await field.press("Enter")
    await page.get_by_role("button", name="same.txt").first.click()
    await expect(field).to_have_value(str(root / "one/same.txt"))
    await expect(page.get_by_role("status")).to_contain_text(["exists"])
    await field.fill("")
    await field.press("Enter")
    await expect(explanation).to_have_count(0)  # which was of another path
    await field.fill("id_rsa")
    await field.press("Enter")
    await explanation.get_by_role("link", name="context.allow_secret").click()
    setting = field_of(page, "context.allow_secret")
    await expect(setting.get_by_role("button")).to_be_focused()
    await expect(setting).to_contain_text('allow_secret = ["/id_rsa"]')
    await open_panel(page, "index")
    heading = page.get_by_role("heading", name=str(root))
    ask = page.get_by_role("button", name="Remove from the index…")
    await ask.click()
    await page.get_by_role("button", name="Cancel").click()
    await expect(heading).to_be_visible()
    await expect(ask).to_be_focused()
    await ask.click()
    await page.get_by_role("button", name="Remove from the index").click()
    await expect(heading).to_have_count(0)
    await expect(page.locator("h1")).to_be_focused()
    assert (root / "a.py").exists()


async def test_vectors_that_are_off_are_explained_with_where_they_are_set(
    page: Page,
) -> None:
    await open_panel(page, "index")
    vectors = page.locator("section").filter(has_text="Vectors")
    await vectors.get_by_role("link").click()
    await expect(page.locator("[data-name='embeddings.model']")).to_be_visible()


async def test_what_cannot_be_done_is_said_with_a_reason(
    page: Page, watch: Watch
) -> None:
    watch.allow("/ui/api/index")
    await open_panel(page, "index")
    field = page.get_by_label("Folder to index")
    for typed, reason in (("relative", "absolute"), ("/", "a whole disk")):
        await field.fill(typed)
        await field.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text(reason)
    await page.route("**/ui/api/index*", lambda route: route.abort())
    await open_panel(page, "search")
    await open_panel(page, "index")
    first = page.locator(".panel > section").first
    await expect(first.get_by_role("alert")).to_contain_text("byok does not answer.")
    await expect(page.get_by_role("heading", name="Vectors")).to_be_hidden()
