"""Search without an index: nothing steers rg, and whatever it does ends in time."""

import asyncio
import base64
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from byok.core.platform.programs import find_program
from byok.search.retrieval.ripgrep import (
    ASK_IN_ENGLISH,
    UNAVAILABLE,
    Ripgrep,
    TextSearchResult,
)
from tests.fakes.patience import PATIENCE, START

RG = shutil.which("rg")
needs_rg = pytest.mark.skipif(RG is None, reason="ripgrep is not installed")


def everything(_: str) -> bool:
    return True


def program(folder: Path, text: str) -> str:
    """Write a small program that plays rg."""
    path = folder / "fake-rg"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def fake(folder: Path, text: str, **limits: Any) -> Ripgrep:
    """Return a search with such a program."""
    path = program(folder, text)
    return Ripgrep(lambda: path, **limits)


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def paths(found: TextSearchResult) -> list[str]:
    return [file.path for file in found.files]


@needs_rg
async def test_ripgrep_finds_a_chinese_word_beside_an_identifier(
    tmp_path: Path,
) -> None:
    write(tmp_path, {"a.py": "def f():  # 搜索\n", "b.py": "def function(): pass\n"})
    found = await Ripgrep(lambda: RG).search(
        tmp_path, "where is the function 搜索", everything
    )
    assert "a.py" in paths(found)


@needs_rg
async def test_ripgrep_does_not_show_outputs_of_a_notebook(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": ["oryx = 1\n"], "outputs": ["oryx out"]}
    write(tmp_path, {"a.ipynb": json.dumps({"cells": [cell]}, indent=1)})
    text = await Ripgrep(lambda: RG).answer(tmp_path, "oryx", everything, 2_000)
    assert '"oryx = 1\\n"' in text
    assert "oryx out" not in text


@needs_rg
async def test_ripgrep_ranks_files_by_rare_words_and_kind(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "src/session.py": "def sign(cookie):\n    return session\n",
            "src/other.py": "session = None\n",
            "tests/test_session.py": "session cookie\n" * 9,
            "docs/x.md": "the session",
        },
    )
    found = await Ripgrep(lambda: RG).search(tmp_path, "session Cookie", everything)
    assert paths(found)[0] == "src/session.py"
    assert set(paths(found)[1:]) == {
        "src/other.py", "tests/test_session.py", "docs/x.md",
    }  # fmt: skip
    assert [line.number for line in found.files[0].lines] == [0, 1]
    assert found.notes == ()


@needs_rg
async def test_ripgrep_answer_has_the_layout_of_the_index(tmp_path: Path) -> None:
    lines = [f"line {n}" for n in range(30)]
    lines[9] = "def zebra():"
    write(tmp_path, {"src/a.py": "\n".join(lines)})
    text = await Ripgrep(lambda: RG).answer(
        tmp_path, "zebra", everything, 900, prefix="w/"
    )
    assert text == (
        "The following code sections were retrieved:\n"
        "Path: w/src/a.py\n"
        "     8\tline 7\n"
        "     9\tline 8\n"
        "    10\tdef zebra():\n"
        "    11\tline 10\n"
        "    12\tline 11\n"
    )
    text = await Ripgrep(lambda: RG).answer(tmp_path, "giraffe", everything, 900)
    assert text == "No code was found for this request (no matches).\n"


@needs_rg
async def test_ripgrep_finds_english_code_for_a_chinese_question(
    tmp_path: Path,
) -> None:
    write(tmp_path, {"a.py": "def register_route(): pass\n", "b.py": "zebra = 1\n"})
    found = await Ripgrep(lambda: RG).search(tmp_path, "路由是如何注册的", everything)
    assert paths(found) == ["a.py"]
    text = await Ripgrep(lambda: RG).answer(tmp_path, "霓虹甲乙", everything, 900)
    assert text.endswith(f"\n{ASK_IN_ENGLISH}\n")


@needs_rg
@pytest.mark.case("B73")
async def test_ripgrep_hides_ignored_files_and_masks_keys(
    tmp_path: Path,
) -> None:
    key = "sk-abcdef1234567890abcdef"
    write(tmp_path, {".env": f"zebra={key}", "notes.txt": f"zebra {key}"})
    text = await Ripgrep(lambda: RG).answer(
        tmp_path, "zebra", lambda p: p != ".env", 900
    )
    assert ".env" not in text
    assert key not in text
    assert "Path: notes.txt\n     1\tzebra [redacted]\n" in text


@needs_rg
@pytest.mark.case("B50")
@pytest.mark.parametrize(
    "text",
    [
        "--pre=./x.sh",
        "--files",
        "-f/etc/passwd",
        "--hostname-bin=./x.sh",
        "-x",
        "--",
        "-",
    ],
)
async def test_ripgrep_takes_options_in_a_query_for_words(
    tmp_path: Path, text: str
) -> None:
    marker = tmp_path / "marker"
    root = write(tmp_path / "root", {"a.txt": f"one {text} two", "b.txt": "other"})
    program(root, f"touch {marker}").replace("fake-rg", "x.sh")
    (root / "fake-rg").rename(root / "x.sh")
    found = await Ripgrep(lambda: RG).search(root, text, lambda path: path != "x.sh")
    assert paths(found) == ["a.txt"]
    assert not marker.exists()


@needs_rg
@pytest.mark.case("B52")
async def test_ripgrep_ignores_the_users_own_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "marker"
    root = write(tmp_path / "root", {"a.txt": "zebra"})
    pre = program(tmp_path, f"touch {marker}; cat")
    settings = tmp_path / "ripgreprc"
    settings.write_text(f"--pre={pre}\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(settings))
    assert paths(await Ripgrep(lambda: RG).search(root, "zebra", everything)) == [
        "a.txt"
    ]
    assert not marker.exists()


@needs_rg
@pytest.mark.case("B53")
async def test_ripgrep_in_the_workspace_is_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "marker"
    root = write(tmp_path / "root", {"a.txt": "zebra"})
    for name in ("rg", "rg.exe", "rg.bat"):
        shutil.copy(program(tmp_path, f"touch {marker}"), root / name)
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", f".{os.pathsep}{root}{os.pathsep}{os.environ['PATH']}")
    rg = Ripgrep(lambda: find_program("rg", never=[root]))
    assert paths(await rg.search(root, "zebra", everything)) == ["a.txt"]
    assert not marker.exists()


@needs_rg
@pytest.mark.case("B51")
@pytest.mark.parametrize("text", ["\n", "a\nb", "\r", "zebra\nstripe", "é\ré"])
async def test_ripgrep_searches_a_query_of_several_lines(
    tmp_path: Path, text: str
) -> None:
    write(tmp_path, {"a.txt": "a zebra stripe é"})
    found = await Ripgrep(lambda: RG).search(tmp_path, text, everything)
    assert found.notes == ()
    assert paths(found) == (["a.txt"] if text.strip() else [])


@needs_rg
@pytest.mark.case("B54")
async def test_ripgrep_gives_odd_names_one_result_each(tmp_path: Path) -> None:
    names = ["-rf", "--pre=sh", "new\nline", "caf\udce9", "x" * 255]
    write(tmp_path, dict.fromkeys(names, "zebra"))
    found = await Ripgrep(lambda: RG).search(tmp_path, "zebra", everything)
    assert sorted(paths(found)) == sorted(names)
    text = await Ripgrep(lambda: RG).answer(tmp_path, "zebra", everything, 5000)
    shown = {line for line in text.split("\n") if line.startswith("Path: ")}
    assert shown == {
        "Path: -rf", "Path: --pre=sh", "Path: new\\nline", "Path: caf\\xe9",
        f"Path: {'x' * 255}",
    }  # fmt: skip
    assert json.loads(json.dumps(text)) == text


@needs_rg
@pytest.mark.case("B74")
async def test_ripgrep_skips_large_files_and_truncates_long_lines(
    tmp_path: Path,
) -> None:
    line = b"zebra" + b"x" * 2**19
    write(
        tmp_path,
        {
            "exact.txt": b"zebra\n" + b"x\n" * (2**19 - 3),
            "above.txt": b"zebra\n" + b"x\n" * (2**19 - 3) + b"y",
            "line.txt": line,
        },
    )
    found = await Ripgrep(lambda: RG).search(tmp_path, "zebra", everything)
    assert sorted(paths(found)) == ["exact.txt", "line.txt"]
    assert max(len(line.text) for file in found.files for line in file.lines) == 400


@needs_rg
async def test_ripgrep_skips_symlinks_pipes_and_git(tmp_path: Path) -> None:
    write(tmp_path, {"secret": "zebra", "root/.git/config": "zebra"})
    root = write(tmp_path / "root", {".hidden/a.py": "zebra", "skipped": "zebra"})
    (root / ".gitignore").write_text("skipped\n")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "folder").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    found = await Ripgrep(lambda: RG).search(root, "zebra", everything)
    assert paths(found) == [".hidden/a.py"]


def message(path: str, number: int, text: str) -> str:
    line = {"path": {"text": path}, "lines": {"text": text}, "line_number": number}
    return json.dumps({"type": "match", "data": line})


async def test_ripgrep_command_line(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    root = tmp_path / "root"
    root.mkdir()
    text = f'printf "%s\\n" "$@" > {seen}; pwd >> {seen}; env >> {seen}; cat >> {seen}'
    await fake(tmp_path, text).search(root, "zebra", everything)
    lines = seen.read_text().split("\n")
    assert lines[lines.index("-e") :][:5] == ["-e", "zebra", "--", "./", str(root)]
    assert lines[0] == "--no-config"
    names = {line.partition("=")[0] for line in lines[lines.index(str(root)) + 1 :]}
    assert names <= {"PATH", "LANG", "PWD", "SHLVL", "_", "OLDPWD", ""}


async def test_ripgrep_names_and_lines_may_come_as_bytes(tmp_path: Path) -> None:
    raw = {"bytes": base64.b64encode(b"caf\xe9").decode()}
    line = {"type": "match", "data": {"path": raw, "lines": raw, "line_number": 2}}
    rg = fake(tmp_path, f"echo '{json.dumps(line)}'")
    found = await rg.search(tmp_path, "zebra", everything)
    assert [(f.path, f.lines) for f in found.files] == [
        ("caf\udce9", ((1, "caf\udce9"),))
    ]


FOUND = f"echo '{message('./a.py', 3, 'zebra')}'"


@pytest.mark.slow
@pytest.mark.case("F20")
@pytest.mark.parametrize(
    ("text", "note", "matched"),
    [
        ("exit 1", None, False),
        (f"{FOUND}; exit 2", None, True),
        ("exit 2", "exit 2", False),
        ("echo junk; exit 2", "exit 2", False),
        ("kill -9 $$", "exit -9", False),
        ("echo junk; echo '[1]'; echo '{\"type\":\"match\"}'; exit 0", None, False),
        (f"{FOUND}; exec cat /dev/zero", "too common", True),
        (f"{FOUND}; yes zebra", "too common", True),
        (f"{FOUND}; exec sleep 60", "stopped after", True),
        (f"{FOUND}; sleep 60 & exec >&-; wait", "stopped after", True),
    ],
    ids=["no match", "partly", "exit 2", "junk and exit 2", "killed", "junk",
         "one endless line", "1 GB", "hangs", "hangs with its output closed"],
)  # fmt: skip
async def test_ripgrep_has_a_deadline_whatever_it_does(
    tmp_path: Path, text: str, note: str | None, matched: bool
) -> None:
    hangs = note == "stopped after"
    rg = fake(tmp_path, text, token_seconds=4.0 if hangs else PATIENCE)
    async with asyncio.timeout(START):
        found = await rg.search(tmp_path, "zebra", everything)
    assert len(found.notes) == (note is not None)
    assert all(note and note in said for said in found.notes)
    assert [(f.path, f.lines) for f in found.files] == (
        [("a.py", ((2, "zebra"),))] if matched else []
    )


@pytest.mark.case("F20")
async def test_ripgrep_that_is_missing_or_broken_is_reported_in_one_sentence(
    tmp_path: Path,
) -> None:
    (tmp_path / "plain").write_text("not a program")
    (tmp_path / "plain").chmod(0o644)
    (tmp_path / "junk").write_bytes(b"\x7fELF junk")
    (tmp_path / "junk").chmod(0o755)
    names = ("gone", "plain", "junk", "")
    finds: list[Callable[[], str | None]] = [lambda: None]
    finds += (partial(str, tmp_path / name) for name in names)
    for find in finds:
        found = await Ripgrep(find).search(tmp_path, "zebra stripe", everything)
        assert (found.files, found.notes) == ((), (UNAVAILABLE,))
    text = await Ripgrep(lambda: None).answer(tmp_path, "zebra", everything, 900)
    assert "install ripgrep" in text


async def test_ripgrep_reports_a_missing_folder_in_one_sentence(tmp_path: Path) -> None:
    rg = fake(tmp_path, "exit 1")
    text = await rg.answer(tmp_path / "gone", "zebra stripe", everything, 900)
    assert text.count("folder of the workspace is gone") == 1


@pytest.mark.case("F20")
async def test_ripgrep_words_together_have_a_deadline(tmp_path: Path) -> None:
    rg = fake(tmp_path, "exec sleep 60", token_seconds=50, total_seconds=1)
    found = await rg.search(tmp_path, "one two three four five", everything)
    assert found.files == ()
    assert all("stopped after" in note for note in found.notes)


async def test_ripgrep_is_killed_when_the_caller_leaves(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    rg = fake(tmp_path, f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 60")
    task = asyncio.ensure_future(rg.search(tmp_path, "zebra", everything))
    while not pid.exists():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
