"""A daemon beside a search server: what it is sent, and what users see of it."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from byok.search.remote.remote_search import RemoteSearch
from byok.wiring import remote_search
from tests.fakes.clients import find_code, until_complete
from tests.fakes.daemon import Editor, running
from tests.fakes.engines import written
from tests.fakes.patience import PATIENCE
from tests.fakes.zoekt_server import ZoektServer, found

TOKEN = "token-of-the-search-server"
NOODLES = "def cook_noodles(pot):\n    return pot.boil()\n"


async def status(editor: Editor) -> dict[str, Any]:
    return dict((await editor.post("/byok/index/status")).json)


async def test_an_agent_finds_code_of_a_server_that_needs_token_and_headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = partial(RemoteSearch, seconds=PATIENCE)
    monkeypatch.setattr(remote_search, "RemoteSearch", patient)
    root = written(tmp_path / "zoo", {"lion.py": "def feed_lion(): ...\n"})
    server = ZoektServer(found("git.example/food/kitchen", "src/noodles.py", NOODLES))
    server.token, server.headers = f"token {TOKEN}", {"X-Org": "animals"}
    async with server:
        remote = {"url": server.url, "token_scheme": "token", "headers": server.headers}
        settings = {
            "context": {"workspaces": [str(root)]}, "search": {"remote": remote}
        }  # fmt: skip
        environ = {"BYOK_KEY_SEARCH_SERVER": TOKEN}
        async with running(settings, upstream="demo", environ=environ) as editor:
            await until_complete(editor)
            text = await find_code(editor, "who cooks noodles for the lion")
            told = (await status(editor))["remote"]
            await editor.post("/byok/reload")
            assert (await status(editor))["remote"] == told
    assert "Path: lion.py\n" in text
    assert "Path: src/noodles.py (repository git.example/food/kitchen, revision" in text
    assert (told["enabled"], told["asked"], told["answered"]) == (True, 1, 1)
    assert TOKEN not in str(told)
    [asked] = server.asked
    assert asked.startswith('case:no ("')
    assert {'"cook"', '"noodl"', '"lion"'} <= set(asked[9:-1].split(" or "))
