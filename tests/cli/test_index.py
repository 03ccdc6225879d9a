"""byok index: commands, waiting for the index, and the estimate of a build."""

import json
import os
import sys
import time
from pathlib import Path
from typing import cast

import pytest

from byok.cli.daemon_client import LocalClient
from byok.cli.index import (
    describe,
    estimate_index,
    is_settled,
    until_built,
    until_rebuilt,
)
from byok.core.chat import Json
from byok.core.errors import IndexFailed
from byok.core.platform.paths import find_paths
from byok.core.routing import Service
from byok.search.index.types import IndexOptions
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread
from tests.fakes.patience import PATIENCE
from tests.fakes.project import make_project
from tests.fakes.rows import Client, client, space


def shown_with(cli: Cli, word: str, *command: str) -> str:
    """Run a command until it shows a word: a daemon may be scanning once more."""
    deadline = time.monotonic() + PATIENCE
    while word not in (shown := cli(*command).out):
        assert time.monotonic() < deadline, shown
    return shown


def check_status(cli: Cli, project: Path, *, daemon: bool) -> None:
    """Add a folder, and see what is told of it."""
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


def check_reasons(cli: Cli, project: Path) -> None:
    """Ask why, rebuild, remove."""
    for name, words in (
        ("bakery/oven.py", "oven.py: indexed"),
        (".env", "skipped (secret): its name"),
        ("bake.log", "skipped (ignored): *.log in .gitignore"),
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
    rebuilt = cli("index", "rebuild")
    assert ("There is no workspace" in rebuilt.out, rebuilt.err) == (True, "")
    check_status(cli, project, daemon=False)
    assert "Removed " in cli("index", "remove", project).out


def test_with_a_daemon_it_indexes(cli: Cli, project: Path) -> None:
    with daemon_thread():
        check_status(cli, project, daemon=True)
        check_reasons(cli, project)
        quick = cli("index", "add", project, "--no-wait")
        assert "the daemon is indexing it" in quick.out


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


def test_a_name_that_no_request_can_hold_is_refused(cli: Cli) -> None:
    with daemon_thread():
        assert cli("index", "why", "caf\udce9.py").code == 78


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


async def test_build_progress_waits_until_the_named_folders_are_complete() -> None:
    other = space("indexing", "/other")
    asks = client(
        [space("scanning"), other],
        [space("indexing"), other],
        [space("complete"), other],
    )
    built = await until_built(asks, {"/w"})
    assert [w["phase"] for w in built.workspaces] == ["complete"]
    assert cast(Client, asks).asked == 3


@pytest.mark.parametrize(
    ("phase", "note", "settled"),
    [
        ("indexing", "", False),
        ("indexing", "it is watched by polling", False),
        ("complete", "", True),
        ("scanning", "could not be synchronised: no such folder", True),
    ],
)
def test_build_progress_ends_where_waiting_is_of_no_more_use(
    phase: str, note: str, settled: bool
) -> None:
    assert is_settled(space(phase, note=note)) is settled


def test_build_progress_describes_what_is_left_out() -> None:
    counters = {"ignored": 12, "secret": 1, "too_large": 0, "walk_seconds": 0.5}
    told = describe(space("complete", counters=counters))
    assert told == ("/w: 1,234 files indexed; excluded: 12 ignored, 1 private")
    assert describe(space("complete")) == "/w: 1,234 files indexed"


def test_build_progress_of_a_workspace_that_is_too_large_says_what_to_do() -> None:
    note = "more than 10 files: ripgrep answers instead"
    told = describe(space("workspace-too-large", note=note))
    assert "ripgrep answers instead" in told
    assert "context.max_files" in told


async def test_build_progress_waits_for_a_rebuild() -> None:
    waiting = [3, 1, 0]

    class Rebuilding(Client):
        async def ask(self, service: Service, body: Json) -> Json:
            return {**await super().ask(service, body), "waiting": waiting.pop(0)}

    asks = Rebuilding([[space("complete")]])
    await until_rebuilt(cast(LocalClient, asks), 4)
    assert waiting == []
    with pytest.raises(IndexFailed, match="disk is full"):
        await until_rebuilt(client([], error="The disk is full."), 4)


def test_estimate_counts_files_bytes_time_and_disk_by_the_rules_of_the_index(
    tmp_path: Path, clean_environment: Path
) -> None:
    root = tmp_path / "work"
    (root / "node_modules").mkdir(parents=True)
    (root / "node_modules" / "a.js").write_text("x" * 1000)
    (root / ".gitignore").write_text("*.log\n")
    (root / "a.log").write_text("x" * 1000)
    (root / ".env").write_text("SECRET=1")
    for number in range(10):
        (root / f"{number}.py").write_bytes(b"x" * 900_000)
    found = estimate_index(root, IndexOptions(max_files=100))
    assert (found.files, found.bytes) == (11, 9_000_006)
    assert found.left_out == 3
    assert found.seconds == 1.0
    assert found.disk_bytes == 1_800_001
    assert not found.too_large
    assert "estimated: 1 s" in found.lines()[1]
    assert not clean_environment.exists()


def test_estimate_reports_a_folder_that_is_too_large(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("x")
    found = estimate_index(tmp_path, IndexOptions(max_files=2))
    assert found.too_large
    assert "ripgrep would answer" in found.lines()[-1]


@pytest.mark.skipif(sys.platform != "linux", reason="others have no such names")
@pytest.mark.parametrize("verb", ["add", "remove", "why"])
def test_a_folder_whose_name_is_no_text_is_refused(
    cli: Cli, tmp_path: Path, verb: str
) -> None:
    folder = tmp_path / os.fsdecode(b"odd\xff")
    folder.mkdir()
    done = cli("index", verb, folder)
    assert (done.code, done.out) == (78, "")
    assert "Rename" in done.err
