"""What keys do anywhere on the page, the palette among it."""

import time
from functools import partial
from typing import Any

from playwright.async_api import Locator, Page, Route, expect

from byok.core.platform.paths import find_paths
from tests.fakes.daemon import Editor
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.pages import axe, control, field, open_panel, settle


async def test_the_palette_leads_to_what_words_name(page: Page, editor: Editor) -> None:
    await editor.chat(conversation_id="talk-of-today")
    await page.keyboard.press("Control+k")
    options = page.locator("#found [role=option]")
    await expect(options.first).to_be_visible()
    assert await axe(page) == ""
    await page.keyboard.type("go cost")
    await expect(options).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(page.locator(".panel.usage")).to_be_attached()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("models fake-model")
    await expect(options).to_have_count(1)
    await options.click()
    await expect(page.locator(".panel.models input")).to_have_value(
        "byok:fake:fake-model"
    )
    await page.keyboard.press("Control+k")
    await page.keyboard.type("settings spend day")
    await options.click()
    await expect(control(page, "caps.usd_per_day")).to_be_focused()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("change model")
    await expect(options).to_have_count(1)
    await page.keyboard.press("Enter")
    row, chosen = (part(page, "routing.default") for part in (field, control))
    await expect(options).to_contain_text("in use")
    await page.keyboard.press("Escape")
    await expect(chosen).to_be_focused()
    await expect(row).to_contain_text("byok:fake:fake-model")
    await open_panel(page, "overview")
    await page.get_by_role("link", name="Change").click()
    await expect(options).to_contain_text("in use")
    assert await axe(page) == ""
    await page.keyboard.type("fake")
    await page.keyboard.press("Enter")
    await expect(chosen).to_have_value("byok:fake:fake-model")
    await page.get_by_role("button", name="Discard").click()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("editor")
    await page.keyboard.press("Enter")
    await expect(page.locator(".sought")).to_contain_text("VS Code")
    await page.keyboard.press("Control+k")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("Control+k")
    await page.keyboard.type("folder_names")  # it is not among the common ones
    await page.keyboard.press("Enter")
    await expect(control(page, "journal.folder_names")).to_be_visible()


# What people type for what they want, and what leads there.
WORDS = {
    "en": {
        "Connect your editor": ("editor", "vscode", "plugin"),
        "Costliest requests today": ("expensive", "cost most", "price"),
        "Slowest requests today": ("slow", "why slow", "latency"),
        "Update what is known of models": ("update", "upgrade"),
        "Change the model": ("switch model", "llm", "default"),
        "Why was a file not found?": ("file not found", "missing", "ignored"),
        "Add or replace a key": ("add key", "api key", "token"),
        "Start or stop capture": ("stop", "record", "capture"),
        "Cost": ("cache", "saved", "cached"),
        "Errors": ("fix", "failed", "cure"),
        "Restart byok": ("restart", "reboot", "start again"),
        "Theme: Dark": ("dark", "theme", "night"),
    },
    "zh": {
        "连接编辑器": ("编辑器", "插件", "editor"),
        "今天最贵的请求": ("最贵", "花费最多", "price"),
        "今天最慢的请求": ("慢", "为什么慢", "slow"),
        "更新模型信息": ("更新", "update"),
        "更换模型": ("换模型", "切换模型", "model"),
        "为什么找不到某个文件？": ("找不到文件", "忽略", "missing"),
        "添加或更换密钥": ("添加密钥", "密钥", "api key"),
        "开始或停止抓包": ("停止", "抓包", "capture"),
        "费用": ("缓存", "节省", "cache"),
        "错误": ("报错", "修复", "fix"),
        "重启 byok": ("重启", "重新启动", "restart"),
    },
}


async def test_each_common_task_is_found_by_words_that_people_type(page: Page) -> None:
    missing = []
    for language, tasks in WORDS.items():
        await page.locator("#language").select_option(language)
        await expect(page.locator("html")).to_have_attribute("lang", language)
        await page.keyboard.press("Control+k")
        search = page.locator("dialog.palette input")
        for title, words in tasks.items():
            for typed in words:
                await search.fill(typed)
                options = await page.locator("#found [role=option]").all_inner_texts()
                if title not in [option.strip() for option in options]:
                    missing.append((typed, title, options))
        await page.keyboard.press("Escape")
    assert missing == []
    await page.keyboard.press("Control+k")
    await page.keyboard.type("找不到文件")
    await page.keyboard.press("Enter")
    await expect(page.locator("#index-path")).to_be_focused()


async def test_a_vendor_is_found_and_leads_to_its_addition(page: Page) -> None:
    await page.keyboard.press("Control+k")
    await page.keyboard.type("openrouter")
    options = page.locator("#found [role=option]")
    await expect(options).to_contain_text("OpenRouter")
    await page.keyboard.press("Enter")
    await expect(page.locator("#add-kind")).to_have_value("openrouter")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("update")
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Fetch")).to_be_enabled()
    assert await axe(page) == ""
    await page.go_back()
    await settle(page)
    await expect(page.locator(".panel.settings")).to_be_visible()
    await expect(dialog).to_have_count(0)


async def test_a_code_leads_to_its_error_and_an_id_to_its_request(
    page: Page, editor: Editor
) -> None:
    started = time.time() - 60
    mended = entry(
        request_id="ab12cd34ef", started=started, conversation="talk", repairs=1
    )
    failed = {"outcome": "failed", "error": "upstream_timeout", "conversation": ""}
    cut = entry(request_id="ab12zz", started=started, **failed)
    write_journal(find_paths().journal, [mended, cut])
    await editor.chat()
    await open_panel(page, "live")
    live = await page.locator("[data-request]").get_attribute("data-request") or ""
    options = page.locator("#found [role=option]")

    async def lead(typed: str, address: str, target: Locator) -> None:
        await page.keyboard.press("Control+k")
        await page.keyboard.type(typed)
        await expect(options).to_have_count(1)
        await expect(options).not_to_contain_text("Nothing here")
        await page.keyboard.press("Enter")
        await expect(target).to_be_focused()
        assert page.url.endswith(f"#/{address}")

    error, turn = page.locator("h3").first, page.locator(".turn")
    await lead("upstream_timeout", "problems/upstream_timeout", error)
    await lead("ab12c", "conversations/talk/1", turn)
    await lead("AB12zz", "problems/upstream_timeout", error)
    await lead(live[:8], f"live/{live}", page.locator("h1"))
    await expect(page.get_by_role("heading", name=f"Request {live}")).to_be_visible()


async def test_without_words_the_palette_offers_what_people_do(page: Page) -> None:
    mended = entry(request_id="ab12", folder="bakery", repairs=1, started=time.time())
    write_journal(find_paths().journal, [mended])
    panels = await page.locator("#nav li a").all_inner_texts()
    await page.keyboard.press("Control+k")
    options = page.locator("#found [role=option]")
    for text in ("Connect your editor", "Add upstream", "bakery"):
        await expect(options.filter(has_text=text)).to_be_visible()
    await expect(options.filter(has_text="ab12")).to_have_count(0)
    await page.keyboard.press("Escape")
    failed = {"outcome": "failed", "error": "upstream_timeout"}
    write_journal(find_paths().journal, [entry(started=time.time(), **failed)])
    await page.keyboard.press("Control+k")
    await expect(options.filter(has_text="in time")).to_be_visible()
    shown = await options.all_inner_texts()
    assert not {text.strip() for text in shown} & {text.strip() for text in panels}


async def test_the_palette_opens_again_in_the_moment_it_closes(page: Page) -> None:
    await page.keyboard.press("Control+k")
    await page.evaluate(
        """() => {
          document.querySelector("dialog.palette").close();
          document.body.dispatchEvent(new KeyboardEvent("keydown",
            { key: "k", ctrlKey: true, bubbles: true }));
        }"""
    )
    await page.keyboard.type("file not found")
    await page.keyboard.press("Enter")
    await expect(page.locator("#index-path")).to_be_focused()


async def test_who_chooses_without_a_look_keeps_the_model_in_use(
    page: Page, editor: Editor
) -> None:
    nothing: dict[str, Any] = {"facts": {}, "sources": {}}
    models: list[dict[str, Any]] = [
        {"id": f"byok:fake:{name}", "upstream": "fake", "model": name, **nothing}
        for name in ("other", "fake-model")
    ]
    catalog = {"models": models, "default": models[1]["id"], "jobs": {}, "fails": []}
    await page.route("**/ui/api/catalog", partial(Route.fulfill, json=catalog))
    await open_panel(page, "settings/choose/routing.default")
    await expect(page.locator("#found [role=option]")).to_have_count(2)
    await expect(page.locator("dialog .tips")).to_contain_text("Enter choose")
    await page.keyboard.press("Enter")
    await expect(control(page, "routing.default")).to_have_value("byok:fake:fake-model")


async def test_a_row_opens_by_a_click_anywhere_in_it(
    page: Page, editor: Editor
) -> None:
    await editor.chat(conversation_id="talk-of-today")
    await open_panel(page, "conversations")
    await page.locator("tbody td.numeric").first.click()
    await expect(page.locator(".panel.conversations .turn")).to_have_count(1)


async def test_a_letter_is_a_command_only_where_nothing_is_entered(
    page: Page, editor: Editor
) -> None:
    await editor.chat()
    await page.keyboard.press("2")
    row = page.locator("td.lead button")
    await expect(row).to_have_count(1)
    await page.keyboard.press("j")
    await expect(row).to_be_focused()
    await page.keyboard.press("6")
    await expect(page.locator(".panel.models input")).to_be_visible()
    await page.keyboard.press("/")
    await page.keyboard.type("2j?")
    await expect(page.locator(".panel.models input")).to_have_value("2j?")
    await page.locator("h1").focus()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_contain_text("Ctrl K")
    assert await axe(page) == ""


async def test_the_menu_of_a_narrow_screen_closes_by_escape_and_by_a_click_elsewhere(
    page: Page,
) -> None:
    await page.set_viewport_size({"width": 360, "height": 800})
    sign_out = page.get_by_role("button", name="Sign out")
    await expect(sign_out).to_be_hidden()
    more = page.get_by_role("button", name="More")
    top = "(element) => element.getBoundingClientRect().top"
    before = await more.evaluate(top)
    await more.click()
    await expect(sign_out).to_be_visible()
    assert await more.evaluate(top) == before  # the menu opens above the bar
    await page.keyboard.press("Escape")
    await expect(sign_out).to_be_hidden()
    await more.click()
    await expect(sign_out).to_be_visible()
    await page.locator("h1").click()
    await expect(sign_out).to_be_hidden()
