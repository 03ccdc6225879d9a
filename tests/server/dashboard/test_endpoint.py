"""/ui over HTTP: files, sign-in, and who may ask for what."""

from tests.fakes.daemon import running
from tests.fakes.dashboard import make_code, signed_in


async def test_a_session_asks_until_it_signs_out() -> None:
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        assert (await page.call("daemon"))["model"] == "byok:demo:echo"
        assert await page.call("sign-out") == {}
        assert await page.refused("daemon") == (401, "dashboard_session")


async def test_a_code_opens_one_session() -> None:
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        code = await make_code(editor)
        await page.call("sign-in", {"code": code})
        assert await page.refused("sign-in", {"code": code}) == (401, "dashboard_code")
