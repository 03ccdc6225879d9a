"""What fails a test of a page does fail it."""

import pytest
from playwright.async_api import Browser

from tests.fakes.daemon import Editor
from tests.fakes.pages import axe, sign_in, visiting
from tests.fakes.patience import until
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
_UNNAMED = "document.getElementById('main').append(document.createElement('input'))"


async def test_what_goes_wrong_fails_a_test_unless_it_is_allowed(
    browser: Browser, editor: Editor, fake: FakeUpstream
) -> None:
    url = editor.daemon.url
    async with visiting(browser, url, check=False) as (context, watch):
        page = await context.new_page()
        await sign_in(page, url)
        await page.evaluate(_UNNAMED)
        assert "label" in await axe(page)
        del watch.wrong[:]
        for script in WRONGS.values():
            await page.evaluate(f"() => {{ {script} }}")

        def is_seen(finding: str) -> bool:
            return any(finding in one for one in watch.wrong)

        await until(lambda: all(map(is_seen, WRONGS)))
        await page.goto(f"{fake.url}/models")
    assert is_seen(f"another host: {fake.url}/models")
    with pytest.raises(AssertionError, match="404 /ui/nowhere"):
        watch.check()
    watch.allow(":", "404 /ui/nowhere")
    watch.check()
