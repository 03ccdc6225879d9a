"""What a stolen clients' token opens, and what a second user of the machine gets.

Both attackers want the owner's secrets, settings and files. The second user is a
process with another user id where the tests may start one; else it has the same id and
does what needs no rights.
"""

import asyncio
import os
from pathlib import Path

import pytest

from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from byok.protocols.augment.endpoints import ENDPOINTS, Local
from tests.fakes.clients import find_code, until_complete
from tests.fakes.daemon import Editor, running
from tests.fakes.program import configure, run_byok, serving
from tests.fakes.raw import request
from tests.fakes.second_user import run_thief
from tests.fakes.upstream import FakeUpstream, answer

OWN = [row.path for row in ENDPOINTS if isinstance(row, Local) and row.for_owner]
NOBODY = 65534
posix = pytest.mark.skipif(os.name != "posix", reason="there are other users on POSIX")


def secrets_of(home: Path) -> list[str]:
    """Return what must never leave the home: the owner's secret, and private words."""
    return [read_token(find_paths().owner_secret), "GATEWAY-4711", "private-words-4711"]


async def ask_for_secrets(editor: Editor, roots: list[str]) -> str:
    """Ask as a client for what own files hold; return all answers as one text."""
    found = ""
    for question in ("owner secret token", "headers X-Gateway", "private-words-4711"):
        for workspaces in (roots, []):
            found += await find_code(editor, question, workspaces=workspaces)
    return found


@pytest.mark.case("B163")
async def test_the_clients_token_opens_no_endpoint_of_commands(
    fake: FakeUpstream, tmp_path: Path
) -> None:
    fake.play(answer("private-words-4711"))
    gateway = {"headers": {"X-Gateway": "GATEWAY-4711"}}
    async with running(
        {"upstreams": {"fake": {"base_url": fake.url, "model": "m", **gateway}}}
    ) as editor:
        await editor.post("/byok/capture", {"switch": "on"})
        await editor.chat("private-words-4711")
        token = f"Bearer {editor.token}"
        body = {"root": str(tmp_path), "switch": "off", "instance": "x", "again": True}
        for path in OWN:
            for spelled in (path, f"/api{path}", f"/{path}/", f"/any/base{path}"):
                told = await editor.post(
                    spelled, body, headers={"Authorization": token}
                )
                assert (told.status, told.json["error"]["code"]) == (403, "owner_only")
        for name in ("daemon", "settings-save", "key-set", "index-add"):
            headers = {"Authorization": token, "Origin": editor.daemon.url}
            told = await editor.post(f"/ui/api/{name}", {}, headers=headers)
            assert told.status == 401
        assert (await editor.post("/byok/capture")).json["on"]  # nothing was switched
        assert not editor.daemon.control.ending.is_set()
        status = (await editor.post("/byok/index/status")).json
        assert status["workspaces"] == []
        assert (await editor.chat()).status == 200  # what clients may is as before


@posix
@pytest.mark.case("B164")
async def test_no_spelling_of_an_own_folder_becomes_a_workspace(
    fake: FakeUpstream, tmp_path: Path
) -> None:
    fake.play(answer("private-words-4711"))
    paths = find_paths()
    gateway = {"headers": {"X-Gateway": "GATEWAY-4711"}}
    settings = {"upstreams": {"fake": {"base_url": fake.url, "model": "m", **gateway}}}
    async with running(settings) as editor:
        await editor.post("/byok/capture", {"switch": "on"})
        await editor.chat("private-words-4711")
        await editor.post("/byok/capture", {"switch": "off"})
        home = paths.config_dir
        spellings = own_spellings(home, tmp_path)
        assert len(spellings) >= 30
        for root in spellings:
            refused = await editor.post("/byok/index/add", {"root": root})
            assert refused.status != 200, root
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / "a.py").write_text("x = 'GATEWAY'\n")
        around = [str(home.parent), str(tmp_path)]
        for root in around:
            await editor.post("/byok/index/add", {"root": root})
        await until_complete(editor)
        told = await ask_for_secrets(editor, [*spellings, *around])
        for secret in secrets_of(home):
            assert secret not in told.replace(f'"{secret}', "")
        for name in ("owner-secret", "config.toml", "byok.log", "capture"):
            assert name not in told


def own_spellings(home: Path, folder: Path) -> list[str]:
    """Return ways to name byok's folders, and what is in them."""
    links = {
        "one": home,
        "two": home / "state",
        "three": folder / "one",
        "four": home.parent,
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    below = ["", "state", "state/log", "state/capture", "data", "data/index", "prompts"]
    for name in below:
        (home / name).mkdir(parents=True, exist_ok=True)
    name = home.name
    return [
        *(str(home / part) for part in below),
        *(f"{home}/./{part}" for part in below),
        *(f"{home}//{part}/" for part in ("", "state")),
        *(f"{home}/state/../{part}" for part in ("", "state", "data")),
        *(f"{folder}/../{folder.name}/one/{part}" for part in ("", "state")),
        *(f"{folder}/one/{part}" for part in below),
        *(f"{folder}/two/{part}" for part in ("", "log", "../data")),
        *(f"{folder}/three/{part}" for part in ("", "state/log")),
        *(f"{folder}/four/{name}/{part}" for part in ("", "state")),
        *(f"/proc/self/root{home}/{part}" for part in ("", "state")),
    ]


@posix
@pytest.mark.slow
@pytest.mark.case("B165")
async def test_a_second_user_gets_nothing_of_a_running_daemon(
    clean_environment: Path, fake: FakeUpstream
) -> None:
    home = clean_environment
    configure(home, fake.url)
    async with serving(home) as program:
        await program.ask(request(body=b'{"message": "private-words-4711"}'))
        shown = await asyncio.to_thread(run_byok, "dashboard", "--link")
        code = shown.stdout.split()[-1]
        secrets = [
            *(program.token, program.owner_token, code, code.replace("-", "")),
            *((home / "state/owner-secret").read_text().strip(), "private-words-4711"),
        ]
        found = await asyncio.to_thread(run_thief, home, program.port, secrets)
        if found["uid"] == os.getuid():
            # The files are this user's own; what is asked of the port still counts.
            found["got"] = [one for one in found["got"] if one.startswith("200")]
        assert found["got"] == []
        await program.check_well()
