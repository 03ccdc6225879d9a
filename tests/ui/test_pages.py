"""What fails a test of a page does fail it."""

import pytest
from playwright.async_api import Browser, Page

from tests.fakes.daemon import Editor
from tests.fakes.pages import axe, signed_in, visiting
from tests.fakes.upstream import FakeUpstream

WRONGS = {
    "console error: said": "console.error('said')",
    "console warning: said": "console.warn('said')",
    "error: thrown": "setTimeout(() => { throw new Error('thrown'); })",
    "policy: img-src": "new Image().src = 'https://example.org/x.png'",
    "policy: connect-src": "fetch('http://127.0.0.1:9/').catch(() => {})",
    "policy: require-trusted-types-for": "try { document.body.innerHTML = '<b>'; }"
    " catch {}",
    "404 /ui/nowhere": "fetch('/ui/nowhere')",
}


@pytest.mark.parametrize("finding", WRONGS)
async def test_what_goes_wrong_fails_a_test(
    browser: Browser, editor: Editor, finding: str
) -> None:
    with pytest.raises(AssertionError, match=finding):
        async with signed_in(browser, editor.daemon.url) as page:
            await page.evaluate(f"() => {{ {WRONGS[finding]} }}")
            await page.wait_for_timeout(200)


async def test_a_request_to_another_host_fails_a_test(
    browser: Browser, editor: Editor, fake: FakeUpstream
) -> None:
    url = editor.daemon.url
    with pytest.raises(AssertionError, match=f"another host: {fake.url}/models"):
        async with visiting(browser, url) as (context, _):
            page = await context.new_page()
            await page.goto(fake.url + "/models")


async def test_what_a_test_allows_does_not_fail_it(
    browser: Browser, editor: Editor
) -> None:
    async with visiting(browser, editor.daemon.url) as (context, watch):
        page = await context.new_page()
        watch.allow("404 /ui/nowhere")
        await page.goto(f"{editor.daemon.url}/ui/nowhere")
    assert watch.wrong != []


async def test_axe_sees_what_is_not_accessible(page: Page) -> None:
    script = "document.getElementById('main').append(document.createElement('input'))"
    await page.evaluate(script)
    assert "label" in await axe(page)
