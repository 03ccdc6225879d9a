"""A feature is one folder and one row: its setting, status, page and command work."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import aiohttp
import pytest

from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from byok.features.status import write_rows
from tests.fakes.daemon import write_settings
from tests.fakes.patience import PATIENCE
from tests.fakes.program import ROOT, serving_sync

HELLO = {"message": "Hi."}
BYOK = (sys.executable, "-m", "tests.fakes.trial_features")


def run(*arguments: str) -> str:
    """Run a command of the byok that has the row; return what it prints."""
    done = subprocess.run(
        [*BYOK, *arguments],
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout


async def post(url: str, token: str, body: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.post(url, json=body) as response,
    ):
        assert response.status == 200
        *_, last = (await response.text()).splitlines()
        return json.loads(last)


@pytest.mark.slow
async def test_a_folder_and_a_row_are_a_feature() -> None:
    paths = find_paths()
    write_settings("[hours]\nbusy = 1000\n")
    program = (*BYOK, "serve", "--port", "0", "--upstream", "demo")
    with serving_sync(program=program) as (_, ready):
        url = ready.split()[-1]
        for _ in range(2):
            await post(
                f"{url}/chat-stream", read_token(paths.token), {"message": "Hi."}
            )
        told = await asyncio.to_thread(run, "hours")
        code = await asyncio.to_thread(run, "dashboard", "--link")
        api = f"{url}/ui/api"
        signed_in = await post(f"{api}/sign-in", "", {"code": code.split()[-1]})
        state = await post(f"{api}/state", signed_in["token"], {})
        form = await post(f"{api}/settings", signed_in["token"], {})
    assert told.endswith(":00 2\n")
    shown = write_rows(state["features"]["hours"])  # as `byok status` does
    assert shown == ["requests_this_hour: 2 of 1,000 used"]
    [group] = [group for group in form["groups"] if group["name"] == "hours"]
    assert [field["value"] for field in group["fields"]] == [1000]
