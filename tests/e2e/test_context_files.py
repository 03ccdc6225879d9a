"""A workspace while people work in it: every change is found, no secret ever is."""

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clients import find_code, until_complete
from tests.fakes.daemon import Editor, running
from tests.fakes.engines import written
from tests.fakes.patience import PATIENCE, until
from tests.fakes.project import git

needs_rg = pytest.mark.skipif(not shutil.which("rg"), reason="rg is not installed")


@asynccontextmanager
async def following(*roots: Path, **sections: Any) -> AsyncIterator[Editor]:
    """Run a daemon that follows folders."""
    context = {"workspaces": [str(root) for root in roots]}
    context |= sections.pop("context", {})
    async with running({"context": context, **sections}, upstream="demo") as editor:
        yield editor


async def status(editor: Editor) -> Any:
    return (await editor.post("/byok/index/status")).json


async def answers(
    editor: Editor, query: str, holds: Callable[[str], bool], what: str = ""
) -> float:
    """Ask until the answer is right; returns the seconds that took."""
    began = time.monotonic()

    async def is_right() -> bool:
        return holds(await find_code(editor, query))

    await until(is_right, PATIENCE)
    seconds = time.monotonic() - began
    print(f"{what or query}: {seconds:.2f} s")
    return seconds


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(
        tmp_path / "zoo",
        {
            "lion.py": "def feed_lion():\n    return 'meat'\n",
            "src/tiger.py": "def feed_tiger():\n    return 'fish'\n",
            "src/bear.py": "def feed_bear():\n    return 'honey'\n",
        },
    )


async def test_workspace_change_of_every_kind_is_found(root: Path) -> None:
    async with following(root) as editor:
        await until_complete(editor)
        (root / "lion.py").write_text("def groom_lion(): pass\n")
        await answers(editor, "groom_lion", lambda t: "def groom_lion" in t, "save")
        await answers(editor, "feed_lion", lambda t: "def feed_lion" not in t)
        (root / "src" / "bear.py").unlink()
        await answers(editor, "feed_bear", lambda t: "bear.py" not in t, "delete")
        (root / "src").rename(root / "lib")
        await answers(
            editor,
            "feed_tiger",
            lambda t: "Path: lib/tiger.py" in t and "src/tiger.py" not in t,
            "rename of a folder",
        )
        (root / ".gitignore").write_text("lib/\n")
        await answers(editor, "feed_tiger", lambda t: "tiger.py" not in t, "ignore")
        (root / ".gitignore").unlink()
        await answers(editor, "feed_tiger", lambda t: "lib/tiger.py" in t, "unignore")
        await until_complete(editor)
        before = (await status(editor))["totals"]["blobs"]
        os.utime(root / "lion.py")
        await answers(editor, "groom_lion", lambda t: "def groom_lion" in t, "touch")
        assert (await status(editor))["totals"]["blobs"] == before
        shutil.rmtree(root / "lib")
        await answers(editor, "feed_tiger", lambda t: "tiger.py" not in t, "rm -r")


async def test_workspace_on_another_branch_is_indexed_anew(root: Path) -> None:
    git(root, "init", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-m", "Cats")
    git(root, "switch", "-c", "birds")
    (root / "lion.py").unlink()
    written(root, {"src/tiger.py": "def stroke_tiger(): pass\n"})
    written(root, {f"birds/{n}.py": f"def feed_bird_{n}(): pass\n" for n in range(50)})
    git(root, "add", ".")
    git(root, "commit", "-m", "Birds")
    async with following(root) as editor:
        await until_complete(editor)
        assert "def feed_bird_7" in await find_code(editor, "feed_bird_7")
        git(root, "switch", "main")
        await answers(
            editor, "feed_lion", lambda t: "def feed_lion" in t, "branch, files come"
        )
        await answers(editor, "feed_bird_7", lambda t: "birds/" not in t, "files go")
        await answers(editor, "feed_tiger", lambda t: "def feed_tiger" in t)
        assert "stroke_tiger" not in await find_code(editor, "feed_tiger")


async def test_workspace_of_an_editor_that_uploads_nothing_is_searched(
    root: Path, tmp_path: Path
) -> None:
    other = written(tmp_path / "other", {"emu.py": "def feed_lion_of_others(): ...\n"})
    window = {"X-Request-Session-Id": "a-window"}
    folders = {"workspace_folders": [{"folder_root": str(root)}]}
    chat = {
        "message": "Hello",
        "mode": "AGENT",
        "nodes": [{"type": 4, "ide_state_node": folders}],
    }
    async with following(root, other) as editor:
        await until_complete(editor)
        before = await find_code(editor, "feed_lion", window="a-window")
        await editor.post("/chat-stream", chat, headers=window)
        told = await find_code(editor, "feed_lion", window="a-window")
        stranger = await find_code(editor, "feed_lion")
    for text in (before, stranger):
        assert "does not say which one" in text
    assert "def feed_lion" in told
    assert "emu.py" not in told


async def test_workspace_folder_that_vanishes_is_reported_and_comes_back(
    root: Path,
) -> None:
    async with following(root) as editor:
        await until_complete(editor)
        root.rename(root.with_name("away"))
        await answers(editor, "feed_lion", lambda t: "its folder is gone" in t)
        assert "def feed_lion" not in await find_code(editor, "feed_lion")
        root.with_name("away").rename(root)
        await answers(
            editor,
            "feed_lion",
            lambda t: "def feed_lion" in t and "is gone" not in t,
            "folder is back",
        )


SECRETS = {
    ".env": "LION_PASSWORD=1",
    "config/prod.env": "LION_PASSWORD=2",
    ".ENV": "LION_PASSWORD=3",
    "id_rsa": "LION_PASSWORD=4",
    "id_rsa.bak": "LION_PASSWORD=5",
    "tls/server.pem": "LION_PASSWORD=6",
}


@pytest.mark.case("B72", "B73")
@pytest.mark.parametrize(
    "mode", ["index", pytest.param("ripgrep", marks=needs_rg), "auto"]
)
async def test_no_file_with_keys_is_ever_shown(root: Path, mode: str) -> None:
    written(root, {**SECRETS, ".gitignore": "!.env\n!id_rsa\n!*.pem\n!.ENV\n"})
    key = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 2
    written(root, {"notes.txt": f"LION_PASSWORD and api_key = {key}\n"})
    async with following(root, retrieval={"mode": mode}) as editor:
        await until_complete(editor)
        text = await find_code(editor, "LION_PASSWORD")
        assert "notes.txt" in text
        assert key not in text
        for path in SECRETS:
            assert Path(path).name not in text.replace(".gitignore", "")
        for digit in range(1, 7):
            assert f"LION_PASSWORD={digit}" not in text
        hits = (await editor.post("/byok/search", {"query": "LION_PASSWORD"})).json
        assert not {hit["path"] for hit in hits["hits"]} & set(SECRETS)


@pytest.mark.case("B54")
@pytest.mark.parametrize("mode", ["index", pytest.param("ripgrep", marks=needs_rg)])
async def test_odd_file_names_are_shown_escaped(tmp_path: Path, mode: str) -> None:
    names = ["-rf", "--pre=sh", "new\nline", "x" * 250 + ".py", "esc\x1b[31m.py"]
    root = written(tmp_path / "p", {name: "zebra = 1\n" for name in names})
    Path(os.fsdecode(os.fsencode(root) + b"/in\xffvalid")).write_text("zebra = 2\n")
    async with following(root, retrieval={"mode": mode}) as editor:
        await until_complete(editor)
        text = await find_code(editor, "zebra")
    shown = [line for line in text.splitlines() if line.startswith("Path: ")]
    assert "\x1b" not in text
    assert len(shown) == len(set(shown))
    assert {"Path: -rf", "Path: --pre=sh", "Path: new\\nline"} <= set(shown)
    assert "Path: esc\\x1b[31m.py" in shown
    json.dumps(text).encode()


@pytest.mark.case("B71")
async def test_an_absurd_ignore_file_costs_little(root: Path) -> None:
    lines = [
        "*a" * 8 + "*b",
        "a/**/b/**/" * 12,
        "[z-a]",
        "\\",
        "[a-\\]]",
        "\0",
        "x" * 200_000,
    ]
    (root / ".gitignore").write_text(
        "\n".join([*lines, *("y\n" for _ in range(10_000))])
    )
    (root / ".augmentignore").write_text("\n".join(["?" * 900] * 10))
    many = "".join(f"**/generated_{n}/**/*.{n}.tmp\n" for n in range(1_000))
    written(root, {"many/.gitignore": many, "many/cub.py": "def feed_cub(): ...\n"})
    (root / ("a" * 60)).write_text("feed_lion")
    async with following(root) as editor:
        await until_complete(editor)
        assert "def feed_lion" in await find_code(editor, "feed_lion")
        assert "def feed_cub" in await find_code(editor, "feed_cub")


@pytest.mark.case("B74", "B75")
async def test_workspace_odd_content_is_read_right_or_left_out(root: Path) -> None:
    (root / "one_line.js").write_text("zebra " * 150_000)
    (root / "large.txt").write_bytes(b"zebra large\n" * 90_000)
    (root / "utf16.txt").write_text("first\nzebra sixteen\n", "utf-16")
    (root / "latin.txt").write_bytes(
        "caf\u00e9 is fine\nzebra latin\n".encode("latin-1")
    )
    (root / "nul.txt").write_bytes(b"zebra\0nul")
    (root / "cr.txt").write_bytes(b"first\rzebra return")
    (root / "bom.txt").write_bytes(b"\xef\xbb\xbfzebra bom\n")
    async with following(root) as editor:
        await until_complete(editor)
        text = await find_code(editor, "zebra")
    assert len(text) <= 20_000
    for name in ("one_line.js", "large.txt", "nul.txt"):
        assert f"Path: {name}\n" not in text
    for line in (
        "     2\tzebra sixteen",
        "     2\tzebra latin",
        "     2\tzebra return",
        "     1\tzebra bom",
    ):
        assert line in text


@pytest.mark.case("F23")
async def test_hundreds_of_files_renamed_at_once_are_all_right(tmp_path: Path) -> None:
    files = {f"old/m{n}.py": f"def work_{n}(): pass\n" for n in range(300)}
    root = written(tmp_path / "p", files)
    async with following(root) as editor:
        await until_complete(editor)
        (root / "new").mkdir()
        for n in range(300):
            (root / "old" / f"m{n}.py").rename(root / "new" / f"m{n}.py")
        await answers(
            editor,
            "work_299",
            lambda t: "Path: new/m299.py" in t and "old/" not in t,
            "renames",
        )
        await until_complete(editor)
        [told] = (await status(editor))["workspaces"]
        assert told["files_tracked"] == 300


async def test_workspace_questions_during_saves_never_fail(root: Path) -> None:
    async with following(root) as editor:

        async def save() -> None:
            for n in range(20):
                (root / "lion.py").write_text(f"def feed_lion_{n}(): pass\n")
                await asyncio.sleep(0.01)

        async def question() -> None:
            for _ in range(10):
                await find_code(editor, "feed_lion", enable_commit_retrieval=True)

        await asyncio.gather(save(), question(), question())
        await answers(editor, "feed_lion_19", lambda t: "def feed_lion_19" in t)
