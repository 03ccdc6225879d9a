"""byok index, with a daemon and without."""

import asyncio
import json
import time
from pathlib import Path
from typing import cast

import pytest

from byok.cli.daemon_client.client import LocalClient
from byok.cli.index import wait_for
from byok.core.chat import Json
from byok.core.platform.paths import find_paths
from byok.core.routing import Service
from tests.fakes.build_states import space
from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.patience import PATIENCE
from tests.fakes.project import make_project


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "bakery")


def shown_with(cli: Cli, word: str, *command: str) -> str:
    """Run a command until it shows a word: a daemon may be scanning once more."""
    deadline = time.monotonic() + PATIENCE
    while word not in (shown := cli(*command).out):
        assert time.monotonic() < deadline, shown
    return shown


def check_index(cli: Cli, project: Path, *, daemon: bool) -> None:
    """Add, tell, ask why, rebuild, remove."""
    added = cli("index", "add", project)
    assert added.code == 0
    assert added.out.startswith(
        f"{project}: 4 files indexed; excluded: 1 ignored, 2 private"
    )
    assert "\x1b" not in added.out + added.err
    assert ("byok is not running" in added.err) is not daemon

    told = json.loads(shown_with(cli, '"complete"', "index", "status", "--json"))
    assert told["daemon"] is daemon
    [space] = told["workspaces"]
    assert (space["root"], space["phase"]) == (str(project), "complete")
    assert told["totals"]["chunks"] >= 3
    assert str(project) in shown_with(cli, "complete", "index", "status")

    for name, words in (
        ("bakery/oven.py", "oven.py: indexed"),
        (".env", "skipped (secret): its name"),
        ("bake.log", "skipped (ignored): a rule"),
        ("new.py", "new.py: not there"),
    ):
        assert words in cli("index", "why", project / name).out
    why = json.loads(cli("index", "why", project / ".env", "--json").out)
    assert why["reason"] == "secret"
    outside = cli("index", "why", project.parent / "x")
    assert (outside.code, outside.err) == (
        1, "byok: No workspace contains this path.\n  `byok index status` lists them, "
        "`byok index add DIR` adds one.\n  More: byok explain no_workspace\n",
    )  # fmt: skip

    assert "4 files indexed" in cli("index", "rebuild").out
    removed = cli("index", "remove", project)
    assert (removed.code, "Removed " in removed.out) == (0, True)
    again = cli("index", "remove", project)
    assert again.code == 1
    assert again.err.startswith(f"byok: {project} is not a workspace.\n  `byok index")


def test_without_a_daemon_this_process_indexes(cli: Cli, project: Path) -> None:
    check_index(cli, project, daemon=False)
    rebuilt = cli("index", "rebuild")
    assert "There is no workspace" in rebuilt.out
    assert rebuilt.err == ""


def test_with_a_daemon_it_indexes(cli: Cli, project: Path) -> None:
    with daemon_thread():
        check_index(cli, project, daemon=True)
        quick = cli("index", "add", project, "--no-wait")
        assert "the daemon is indexing it" in quick.out


def test_index_status_without_data_says_so_and_makes_nothing(cli: Cli) -> None:
    done = cli("index", "status")
    assert done.code == 0
    assert "Nothing is indexed yet" in done.out
    assert "byok is not running" in done.err
    assert not find_paths().data_dir.exists()


def test_index_add_refuses_an_unfit_folder_with_and_without_a_daemon(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    places = (tmp_path / "missing", tmp_path, "/")
    alone = [cli("index", "add", place) for place in places]
    with daemon_thread():
        asked = [cli("index", "add", place) for place in places]
    assert alone == asked
    assert {done.code for done in alone} == {78}


def test_index_add_of_a_folder_that_is_too_large_says_what_answers_instead(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOK_CONTEXT__MAX_FILES", "2")
    done = cli("index", "add", project)
    assert done.code == 0
    assert "ripgrep answers instead" in done.out


@pytest.mark.parametrize("form", [("estimate",), ("--estimate",)])
def test_an_estimate_needs_neither_daemon_nor_index(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    monkeypatch.chdir(project)
    for arguments in (form, (*form, project)):
        done = cli("index", *arguments)
        assert done.code == 0
        assert done.out.startswith(f"{project}: 4 files")
        assert "estimated" in done.out
    assert json.loads(cli("index", *form, "--json").out)["files"] == 4
    assert not find_paths().data_dir.exists()


def test_index_command_does_not_touch_data_of_a_later_byok(
    cli: Cli, project: Path
) -> None:
    import sqlite3

    cli("index", "add", project)
    database = find_paths().database
    with sqlite3.connect(database) as db:
        db.execute("PRAGMA user_version = 9999")
    db.close()
    done = cli("index", "status")
    assert (done.code, done.out) == (76, "")
    assert "later" in done.err or "newer" in done.err


@pytest.mark.case("B117")
def test_index_commands_escape_names_for_the_terminal(cli: Cli, tmp_path: Path) -> None:
    odd = make_project(tmp_path / "b\x1b[31mak\u202e\u200be\nry")
    shown = str(tmp_path / "b\\x1b[31mak\\u202e\\u200be\\nry")
    (odd / "a\x07.py").write_text("def ring() -> None: ...\n")
    commands = [
        ("index", "add", odd),
        ("index", "why", odd / "a\x07.py"),
        ("index", "why", odd / "a\x07.py", "--json"),
        ("index", "status"),
        ("index", "status", "--json"),
        ("index", "estimate", odd),
        ("search", "-w", odd, "ring"),
        ("index", "remove", odd),
        ("index", "remove", odd),
        ("index", "why", odd),
    ]
    with daemon_thread():
        for command in commands:
            done = cli(*command)
            for line in (done.out + done.err).splitlines():
                assert line.replace("\t", "").isprintable(), command
        assert cli("index", "add", odd).out.startswith(f"{shown}: ")


class Busy:
    """Is indexing for ever, as a daemon or as this process."""

    def __init__(self, *, daemon: bool) -> None:
        self.asked = asyncio.Event()
        self._daemon = daemon

    async def daemon(self) -> object | None:
        return self if self._daemon else None

    async def ask(self, service: Service, body: Json) -> Json:
        self.asked.set()
        return {"state": "indexing", "error": "", "workspaces": [space("indexing")]}


@pytest.mark.parametrize(
    ("daemon", "told"),
    [
        (True, "The daemon continues indexing (byok index status).\n"),
        (False, "Indexing stops now; byok serve continues it.\n"),
    ],
)
async def test_index_wait_that_is_interrupted_says_what_goes_on(
    capsys: pytest.CaptureFixture[str], daemon: bool, told: str
) -> None:
    busy = Busy(daemon=daemon)
    client = cast(LocalClient, busy)
    waiting = asyncio.ensure_future(
        wait_for(client, [space("indexing")], no_wait=False)
    )
    await asyncio.wait_for(busy.asked.wait(), PATIENCE)
    waiting.cancel()  # as asyncio.run does at Ctrl-C
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert capsys.readouterr().err == told
