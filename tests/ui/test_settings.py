"""The settings panel: a change reaches the file, the daemon and the next request."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect

from byok.core.platform.paths import find_paths
from byok.features.settings import LoopSettings
from tests.fakes.daemon import Editor, running_on_file, write_settings
from tests.fakes.dashboard import text_for
from tests.fakes.pages import (
    Watch,
    axe,
    control,
    field,
    open_panel,
    save,
    save_button,
    unfold,
)
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream


@pytest_asyncio.fixture(loop_scope="session")
async def editor(clean_environment: Path, fake: FakeUpstream) -> AsyncIterator[Editor]:
    """A daemon with a settings file."""
    write_settings(text_for(fake))
    async with running_on_file() as started:
        yield started


@pytest.fixture
def file() -> Path:
    return find_paths().config


async def test_an_error_is_shown_at_its_setting_and_the_change_is_kept(
    page: Page, fake: FakeUpstream, file: Path
) -> None:
    await open_panel(page, "settings")
    search = page.get_by_label("Find a setting")
    await search.fill("cost")  # the name of their section
    await expect(field(page, "caps.usd_per_day")).to_be_visible()
    await search.fill("dollars")
    await expect(field(page, "caps.usd_per_day")).to_be_visible()
    await expect(field(page, "chat.temperature")).to_be_hidden()
    await expect(page.locator("[data-upstream=fake]")).to_be_hidden()
    await search.fill("temp sampling")
    await expect(control(page, "chat.temperature")).to_be_visible()
    await expect(control(page, "upstreams.fake.temperature")).to_be_visible()
    await search.fill("port")  # no word that merely ends with it
    await expect(control(page, "server.port")).to_be_visible()
    await expect(page.locator("[data-upstream=fake]")).to_be_hidden()
    await search.fill("longest answer")  # words for what the file calls max_tokens
    await expect(control(page, "upstreams.fake.max_tokens")).to_be_visible()
    which = field(page, "upstreams.fake.model")
    await expect(which).to_contain_text("Default model for chats")  # comes first
    await search.fill("(nothing [has these words")
    await expect(page.get_by_text("No setting fits")).to_be_visible()
    await search.fill("")
    await expect(page.get_by_text("No setting fits")).to_be_hidden()
    await expect(control(page, "chat.temperature")).to_be_hidden()
    await expect(control(page, "upstreams.fake.temperature")).to_be_hidden()
    await unfold(page)
    wrong = control(page, "chat.temperature")
    await wrong.fill("3")
    await expect(field(page, "chat.temperature").locator(".fault")).not_to_be_empty()
    await expect(wrong).to_have_attribute("aria-invalid", "true")
    await expect(save_button(page)).to_be_disabled()
    await open_panel(page, "live")
    await open_panel(page, "settings")
    await expect(page.locator(".changes")).to_contain_text("1 change")
    await expect(page.locator(".changes")).to_contain_text("1 cannot be saved")
    await page.get_by_role("button", name="Show", exact=True).click()
    await expect(wrong).to_be_focused()
    await expect(wrong).to_have_value("3")
    await wrong.fill("0.5")
    await expect(page.locator(".changes")).to_be_hidden()
    await control(page, "routing.default").fill("byok:nobody:x")
    fault = field(page, "routing.default").locator(".fault")
    await expect(fault).to_contain_text("names an upstream that is not configured")
    await expect(page.locator(".changes")).to_contain_text("Completion, Edit")
    await expect(save_button(page)).to_be_disabled()
    assert await axe(page) == ""
    await open_panel(page, "overview")
    await expect(page.locator("#status")).to_contain_text("unsaved changes are kept")
    await open_panel(page, "settings")
    await expect(control(page, "routing.default")).to_have_value("byok:nobody:x")
    await page.locator("#language").select_option("zh")
    await expect(control(page, "routing.default")).to_have_value("byok:nobody:x")
    await page.get_by_role("button", name="放弃更改").click()
    await expect(fault).to_be_empty()
    assert file.read_text() == text_for(fake)


async def test_a_list_is_made_empty_and_what_needs_a_restart_gets_it(
    page: Page, editor: Editor, fake: FakeUpstream, file: Path
) -> None:
    await open_panel(page, "settings")
    await unfold(page)
    polling = field(page, "loops.polling")
    entries, box = polling.locator("textarea"), polling.get_by_label("An empty list")
    await expect(entries).to_have_attribute("placeholder", re.compile("read-process"))
    await box.check()
    await expect(entries).to_have_attribute("placeholder", "")
    await save(page)
    await expect(entries).to_be_focused()
    assert file.read_text() == text_for(fake) + "\n[loops]\npolling = []\n"
    assert editor.daemon.control.settings.section(LoopSettings).polling == []
    await expect(box).to_be_checked()
    await entries.fill("read-terminal")
    await expect(box).not_to_be_checked()
    await entries.fill("")
    await save(page)
    assert "polling" not in file.read_text()
    await expect(box).not_to_be_checked()
    write_settings(file.read_text() + '\n[retrieval]\nmode = "index"\n')
    await editor.daemon.control.reload()
    await open_panel(page, "live")
    await open_panel(page, "settings")
    waiting = page.locator(".health")
    await expect(waiting).to_contain_text("retrieval.mode")
    await waiting.get_by_role("button", name="Restart now").click()
    await expect(page.get_by_role("dialog")).to_contain_text("now: 0")
    await page.get_by_role("button", name="Cancel").click()
    await control(page, "server.port").fill("12345")
    await page.get_by_role("button", name="Save and restart").click()
    status = page.get_by_role("dialog").get_by_role("status")
    await expect(status).to_contain_text("byok restarts")
    await expect(status).to_be_focused()
    await asyncio.wait_for(editor.daemon.control.ending.wait(), PATIENCE)
    assert editor.daemon.control.again


async def test_the_page_waits_for_a_restart_that_loses_nothing(
    page: Page, editor: Editor
) -> None:
    control = editor.daemon.control

    async def take_over() -> None:
        """Answer as the process that takes the place of this one."""

    control.on_restart(take_over)
    await open_panel(page, "usage/week")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("restart")
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("You stay signed in")
    assert await axe(page) == ""
    await page.keyboard.press("Escape")
    await open_panel(page, "settings")
    restart = page.get_by_role("button", name="Restart byok")
    for _ in range(2):  # who cancels is asked again
        await restart.click()
        await expect(dialog).to_contain_text("You stay signed in")
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
    await open_panel(page, "usage/week")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("restart")
    await page.keyboard.press("Enter")
    await expect(dialog.get_by_role("button", name="Restart byok")).to_be_focused()
    await page.keyboard.press("Enter")
    await asyncio.wait_for(control.ending.wait(), PATIENCE)
    control.instance = "the one that follows"
    await expect(dialog).to_contain_text("byok has restarted. Version")
    assert await axe(page) == ""
    await page.locator("main .panel").evaluate("(panel) => { panel.id = 'before'; }")
    await page.keyboard.press("Enter")  # on Close
    await expect(dialog).to_have_count(0)
    await expect(page.locator(".panel.usage:not(#before)")).to_be_visible()  # anew
    assert page.url.endswith("#/usage/week")


async def test_a_restart_says_which_settings_are_in_effect_then(
    page: Page, editor: Editor
) -> None:
    daemon, dialog = editor.daemon.control, page.get_by_role("dialog")
    await open_panel(page, "settings")
    await unfold(page)
    await control(page, "retrieval.mode").select_option("index")
    await page.get_by_role("button", name="Save and restart").click()
    await asyncio.wait_for(daemon.ending.wait(), PATIENCE)
    daemon.instance = "the one that follows"
    await expect(dialog).to_contain_text("byok has restarted.")
    await expect(dialog).to_contain_text("In effect now: retrieval.mode")
    await page.keyboard.press("Enter")
    await expect(control(page, "retrieval.mode")).to_have_value("index")


async def test_two_clicks_save_once_and_what_is_typed_meanwhile_is_kept(
    page: Page, file: Path
) -> None:
    await open_panel(page, "settings")
    release = asyncio.Event()

    async def hold(route: Route) -> None:
        await release.wait()
        await route.continue_()

    await unfold(page)
    await page.route("**/ui/api/settings-save", hold)
    await control(page, "chat.max_tokens").fill("77")
    await save_button(page).dblclick()
    await control(page, "chat.top_p").fill("0.9")
    release.set()
    status = page.locator("#top #status")  # where it covers no button
    await expect(status).to_have_text("Saved and in effect.")
    await expect(page.locator(".conflict")).to_have_count(0)
    await expect(page.locator(".changes")).to_contain_text("1 change")
    assert "max_tokens = 77" in file.read_text()
    await expect(control(page, "chat.top_p")).to_have_value("0.9")
    await save(page)
    assert "top_p = 0.9" in file.read_text()


async def test_what_the_browser_does_not_copy_is_shown_selected(
    page: Page, file: Path
) -> None:
    await open_panel(page, "settings")
    copy = page.get_by_role("button", name="Copy: Path of the settings file")
    dialog = page.get_by_role("dialog")
    selected = (
        "document.activeElement.value.slice(document.activeElement.selectionStart)"
    )
    for refuse in ("", "delete Navigator.prototype.clipboard"):  # as on plain HTTP
        await page.evaluate(refuse)
        await copy.click()  # headless, nobody has allowed it
        await expect(dialog).to_contain_text("The browser lets no page copy here.")
        assert await page.evaluate(selected) == str(file)
        assert await axe(page) == ""
        await page.keyboard.press("Escape")
        await expect(copy).to_be_focused()
    await page.context.grant_permissions(["clipboard-write"])
    await page.reload()
    await copy.click()
    await expect(page.locator("#status")).to_have_text("Copied.")
    await page.context.clear_permissions()


async def test_what_is_only_in_the_file_has_its_lines_to_copy(
    page: Page, fake: FakeUpstream, file: Path
) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await open_panel(page, "settings/set/network.proxy")
    row = field(page, "network.proxy")
    await expect(row.get_by_role("button")).to_be_focused()
    await expect(page.locator("[data-part=file]")).to_contain_text(str(file))
    await row.get_by_role("button").click()
    await expect(page.locator("#status")).to_have_text("Copied.")
    lines = await page.evaluate("navigator.clipboard.readText()")
    assert lines.splitlines()[0] == "[network]"
    write_settings(f"{text_for(fake)}{lines}\n")
    await page.reload()
    await expect(row).to_contain_text("Your file has it")
    await expect(row.get_by_role("button")).to_have_count(0)
    other = field(page, "network.ca_file")
    await expect(other).to_contain_text("Write below [network]")
    await other.get_by_role("button").click()
    await expect(page.locator("#status")).to_have_text("Copied.")
    lines = await page.evaluate("navigator.clipboard.readText()")
    assert lines.startswith("ca_file = ")  # which may follow that line at once
    assert await axe(page) == ""
    await page.context.clear_permissions()


async def test_an_upstream_is_added_and_removed(
    page: Page, editor: Editor, fake: FakeUpstream, file: Path
) -> None:
    await open_panel(page, "settings")
    await page.get_by_role("button", name="Add upstream").click()
    kind = page.get_by_label("Who serves the model?")
    listed = [text.strip() for text in await kind.locator("option").all_inner_texts()]
    assert listed[1:3] == ["Ollama", "LM Studio"]
    others = listed[listed.index("DeepSeek") + 1 :]
    assert others == sorted(others, key=str.casefold)
    await kind.focus()
    await page.keyboard.type("google")
    await expect(kind).to_have_value("gemini")
    await kind.select_option("groq")
    vault = page.get_by_label("Keep the key in the vault")
    key, name = page.locator("#add-key"), page.get_by_label("Name in the settings file")
    await expect(vault).not_to_be_checked()
    await name.press("Enter")
    await expect(key).to_be_focused()  # groq needs one
    await key.fill("sk-canary0123456789")
    await key.press("Enter")
    await expect(vault).to_be_focused()  # it goes nowhere unless it is ticked
    assert await axe(page) == ""
    await kind.select_option("")
    await key.fill("")
    await name.fill("fake")
    await page.get_by_role("dialog").get_by_label("Address").fill("https://host/v1")
    await name.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("already exists")
    await page.get_by_role("dialog").get_by_label("Address").fill(fake.url)
    await name.fill("work")
    await name.press("Enter")
    card = page.locator("[data-upstream=work]")
    await expect(card).to_contain_text("lists its models: 1.")
    await expect(card.get_by_role("button", name="Set key")).to_be_focused()
    assert "work" in editor.daemon.services.upstreams
    added = f'\n[upstreams.work]\nbase_url = "{fake.url}"\n'
    assert file.read_text() == text_for(fake) + added
    await unfold(page)
    address = control(page, "upstreams.work.base_url")
    await control(page, "upstreams.work.type").select_option("mistral")
    await address.fill("")
    await expect(address).to_have_attribute("placeholder", re.compile("mistral"))
    models = control(page, "upstreams.work.models")
    await expect(models).not_to_have_attribute("placeholder", re.compile("."))
    await address.fill(fake.url)
    await control(page, "upstreams.work.model").fill("llama")
    await save(page)
    lines = 'type = "mistral"\nmodel = "llama"\n'
    assert file.read_text() == text_for(fake) + added + lines
    await card.get_by_role("button", name="Remove work").click()
    await card.locator(".danger").click()
    await expect(card).to_contain_text("removed when you save")
    await save(page)
    assert file.read_text().rstrip() == text_for(fake).rstrip()


async def test_a_new_upstream_that_does_not_answer_leads_to_its_address(
    page: Page, watch: Watch
) -> None:
    watch.allow("key-test")
    await open_panel(page, "settings/add")
    await page.get_by_label("Name in the settings file").fill("work")
    address = page.get_by_role("dialog").get_by_label("Address")
    await address.fill("http://127.0.0.1:1/v1")
    await address.press("Enter")
    card = page.locator("[data-upstream=work]")
    await expect(card.get_by_role("alert")).to_contain_text("nothing answers")
    await card.get_by_role("link", name="Change address").click()
    await expect(control(page, "upstreams.work.base_url")).to_be_focused()


async def test_who_leaves_while_upstreams_are_looked_at_gets_no_error(
    page: Page, watch: Watch
) -> None:
    await open_panel(page, "settings")
    asked, left = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        asked.set()
        await left.wait()
        await route.abort()  # the page has given it up itself by then

    await page.route("**/ui/api/upstreams", hold)
    test = page.locator("[data-upstream=fake]").get_by_role("button", name="Test")
    await test.click()  # its end makes the page look at all upstreams
    await asyncio.wait_for(asked.wait(), PATIENCE)
    await open_panel(page, "index")
    left.set()
    await page.evaluate("new Promise(requestAnimationFrame)")
    watch.check()


async def test_an_upstream_that_fails_is_seen_where_it_stands(
    page: Page, fake: FakeUpstream, watch: Watch
) -> None:
    watch.allow("key-test")
    fake.models_error = "no such key"
    await open_panel(page, "settings")
    row = page.locator("[data-upstream=fake]")
    state, test = row.locator(".state"), row.get_by_role("button", name="Test")
    await expect(state).to_contain_text("available")
    await test.click()
    await expect(row.get_by_role("alert")).to_contain_text("no such key")
    await expect(state).to_be_hidden()  # as the test has told it
    count = page.locator("#nav a[href='#/problems'] .count")
    await expect(count).to_have_text("1 to fix")
    await open_panel(page, "overview")
    await page.locator(".health").get_by_role("link", name="Show errors").click()
    await expect(page.locator("article q")).to_contain_text("no such key")
    await open_panel(page, "settings")
    await expect(state).to_contain_text("no such key")
    assert await axe(page) == ""
    fake.models_error = ""
    await test.click()
    await expect(state).to_contain_text("available")
    await expect(count).to_have_count(0)


async def test_a_file_that_breaks_and_is_mended_meanwhile(
    page: Page, fake: FakeUpstream, file: Path
) -> None:
    """Who comes back from the editor finds the page as it is then."""
    file.write_text("[chat\n")
    await open_panel(page, "settings")
    await expect(page.get_by_role("alert").first).to_contain_text("line 1")
    in_force = field(page, "chat.temperature")
    await expect(in_force.locator("code")).to_have_text("0.5")
    await expect(page.get_by_text("Not set: uses")).to_have_count(0)
    await page.get_by_role("button", name="Restart byok").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("alert")).to_contain_text("line 1")
    await expect(dialog.locator("footer button:visible")).to_have_count(1)
    await page.keyboard.press("Escape")
    write_settings(text_for(fake))
    await expect(page.get_by_role("alert")).to_have_count(0)
    await unfold(page)
    file.write_text(text_for(fake) + "[broken\n")
    await control(page, "chat.max_tokens").fill("77")
    bar = page.locator(".changes")
    await expect(bar).to_contain_text("is not valid TOML")
    await expect(save_button(page)).to_be_disabled()
    write_settings(text_for(fake))
    await page.evaluate("dispatchEvent(new Event('focus'))")
    await expect(bar).not_to_contain_text("is not valid TOML")
    await save(page)
    assert "max_tokens = 77" in file.read_text()


# The settings are changed elsewhere while the panel is open.


async def test_who_changed_the_file_meanwhile_is_heard(
    page: Page, watch: Watch, fake: FakeUpstream, file: Path
) -> None:
    watch.allow("409 ")
    await open_panel(page, "settings")
    await unfold(page)
    await control(page, "chat.temperature").fill("1.5")
    await control(page, "chat.max_tokens").fill("99")
    write_settings(text_for(fake).replace("0.5", "0.7"))
    await save_button(page).click()
    box = page.locator(".conflict")
    await expect(box).to_contain_text("The file has changed in the meantime")
    await expect(box.locator("tbody tr")).to_have_count(1)
    await expect(box.locator("tbody")).to_contain_text("0.7")
    assert "0.7" in file.read_text()
    await box.get_by_role("button", name="Use the file's").click()
    await expect(control(page, "chat.temperature")).to_have_value("0.7")
    await save(page)
    assert file.read_text() == (
        text_for(fake).replace("0.5 # not too wild\n", "0.7 # not too wild\n")
        + "max_tokens = 99\n"
    )
    watch.allow("/ui/api/settings", "Failed to load resource")
    await control(page, "chat.max_tokens").fill("98")
    write_settings(text_for(fake))
    await page.route("**/ui/api/settings", lambda route: route.abort())
    await save_button(page).click()
    await expect(page.locator("#main .error")).to_contain_text("byok does not answer")
    await expect(control(page, "chat.max_tokens")).to_have_value("98")


async def test_an_upstream_that_another_page_has_removed(
    page: Page, watch: Watch, fake: FakeUpstream, file: Path
) -> None:
    watch.allow("409 ")
    write_settings(text_for(fake) + '\n[upstreams.groq]\nmodel = "x"\n')
    await open_panel(page, "settings")
    await unfold(page)
    card = page.locator("[data-upstream=groq]")
    await card.get_by_role("button", name="Remove groq").click()
    await card.locator(".danger").click()
    await control(page, "chat.max_tokens").fill("77")
    write_settings(text_for(fake))
    await save_button(page).click()
    await expect(page.locator(".conflict")).to_be_visible()
    await expect(page.locator(".changes")).to_contain_text("1 change")
    await save(page)
    assert file.read_text() == text_for(fake) + "max_tokens = 77\n"


async def test_the_model_for_chats_is_changed_from_its_row_and_from_the_overview(
    page: Page, fake: FakeUpstream, file: Path
) -> None:
    """By two clicks and by three."""
    fake.models = ["fake-model", "other"]
    await page.get_by_role("button", name="Check again").click()
    await expect(page.get_by_text("3 models")).to_be_visible()
    await open_panel(page, "models")
    await page.get_by_role("link", name="Use for chats: byok:fake:other").click()
    await save(page)
    assert 'default = "byok:fake:other"' in file.read_text()
    await open_panel(page, "overview")
    await page.get_by_role("link", name="Change").click()
    await page.get_by_role("option", name="fake-model").click()
    await save(page)
    assert 'default = "byok:fake:fake-model"' in file.read_text()
