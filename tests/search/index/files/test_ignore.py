"""Rules of a workspace, held against git itself and ripgrep."""

import logging
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from byok.search.index.files.ignore import Outside, Rules
from byok.search.index.types import SkipReason
from tests.fakes.ignore_files import FILES, PATHS

IGNORED, SECRET = SkipReason.IGNORED, SkipReason.SECRET


def rules(
    files: Mapping[str, str], outside: Sequence[Outside] = (), **options: Any
) -> Rules:
    held = {path: text.encode() for path, text in files.items()}
    return Rules(held.get, outside=lambda: outside, **options)


def test_ignore_pattern_of_the_root_holds_at_every_depth() -> None:
    judged = rules({".gitignore": "*.log\nout/\n"})
    assert judged.reason("a/b/c.log") is IGNORED
    assert judged.reason("out", is_dir=True) is IGNORED
    assert judged.reason("a/out/b/c.py") is IGNORED
    assert judged.reason("a/out") is None


def test_ignore_deeper_rules_win_and_a_later_line_wins() -> None:
    judged = rules({".gitignore": "*.log\n", "a/.gitignore": "!x.log\n!*.txt\nb.txt\n"})
    assert judged.reason("a/x.log") is None
    assert judged.reason("a/y.log") is IGNORED
    assert judged.reason("x.log") is IGNORED
    assert judged.reason("a/b.txt") is IGNORED


def test_nothing_in_an_ignored_folder_comes_back() -> None:
    judged = rules({".gitignore": "a/\n!a/b\n", "a/.gitignore": "!*\n"})
    assert judged.reason("a/b") is IGNORED


def test_augmentignore_stands_behind_gitignore_of_the_same_folder() -> None:
    files = {".gitignore": "gen/\n*.txt\n", ".augmentignore": "!gen/\ndocs/\n"}
    judged = rules({**files, "deep/.gitignore": "!docs/"})
    assert judged.reason("gen/a.py") is None
    assert judged.reason("a.txt") is IGNORED
    assert judged.reason("docs/a.md") is IGNORED
    assert judged.reason("deep/docs/a.md") is None


def test_ignore_rules_from_outside_are_the_weakest_and_the_last_wins() -> None:
    outside = [Outside("first", b"*.a\n*.b\n*.c\n", ""), Outside("last", b"!*.c", "")]
    judged = rules({".gitignore": "!*.b\n"}, outside)
    assert judged.reason("x.a") is IGNORED
    assert judged.reason("x.b") is None
    assert judged.reason("x.c") is None


def test_ignore_rules_from_above_are_relative_to_their_folder() -> None:
    outside = [Outside(".gitignore", b"/pkg/gen/\n/gen2/\nweb/*.c\n", "pkg/web")]
    judged = rules({}, outside)
    assert judged.reason("gen", is_dir=True) is None
    assert judged.reason("gen2", is_dir=True) is None
    assert judged.reason("x.c") is None  # a slash ties it to the folder of the file
    outside = [Outside(".gitignore", b"/pkg/web/gen/\npkg/web/*.c\n*.d\n", "pkg/web")]
    judged = rules({}, outside)
    assert judged.reason("gen", is_dir=True) is IGNORED
    assert judged.reason("x.c") is IGNORED
    assert judged.reason("deep/x.c") is None
    assert judged.reason("deep/x.d") is IGNORED


@pytest.mark.parametrize("line", ["pkg/", "web", "/pkg/*", "*"])
def test_a_folder_declared_although_it_is_ignored_is_searched(line: str) -> None:
    outside = [Outside(".gitignore", f"{line}\n*.log".encode(), "pkg/web")]
    judged = rules({}, outside)
    assert judged.reason("a.py") is None


def test_ignore_what_programs_write_until_the_user_allows_it() -> None:
    noise = [
        *("node_modules/a.js", "a/__pycache__/b.pyc", "dist/a", "x.egg-info/PKG-INFO"),
        *("debug.log", "logs/app.log.1", "app.log-20260101", "daemon.pid", "a/b.py~"),
        *("a.py.orig", "a.py.rej", "a.py.bak", ".a.py.swp", "out.tmp"),
    ]
    lifted = "!node_modules/\n!__pycache__/\n!dist/\n!*.egg-info/\n!*.log*\n!*.pid\n"
    lifted += "!*~\n!*.orig\n!*.rej\n!*.bak\n!*.swp\n!*.tmp\n"
    for files in ({}, {".gitignore": "x\n"}):
        judged = rules(files)
        assert [path for path in noise if judged.reason(path) is not IGNORED] == []
    for name in (".gitignore", ".augmentignore"):
        judged = rules({name: lifted})
        assert [path for path in noise if judged.reason(path)] == []


def test_ignore_keeps_what_only_looks_like_noise() -> None:
    folders = ["src/target/a.rs", "src/build/a.py", "src/dist/a.py", "logs/a.py"]
    files = ["log.py", "log", "CHANGELOG", "changelog.md", "src/logger.log.py"]
    assert [path for path in (*folders, *files) if rules({}).reason(path)] == []


@pytest.mark.case("B72")
@pytest.mark.parametrize("name", [".env", "id_rsa", "a.pem", ".git/config", ".aws/x"])
@pytest.mark.parametrize("ignore_file", [".gitignore", ".augmentignore"])
def test_ignore_secret_files_whatever_a_repository_says(
    name: str, ignore_file: str
) -> None:
    lifting = f"!{name}\n!.*\n!*\n!**\n!.git/\n!.aws/\n"
    files = {ignore_file: lifting, f"a/{ignore_file}": lifting}
    assert rules(files).reason(name) is SECRET
    assert rules(files).reason(f"a/{name}") is SECRET


def test_ignore_version_control_even_where_the_user_allows_secrets() -> None:
    judged = rules({}, allow_secret=("*.pem", ".aws/config", ".git/"))
    assert judged.reason("a/b.PEM") is None
    assert judged.reason("b.key") is SECRET
    assert judged.reason(".aws", is_dir=True) is None
    assert judged.reason(".aws/config") is None
    assert judged.reason(".aws/credentials") is SECRET
    assert judged.reason(".git/config") is SECRET


def test_ignore_folders_of_byok_itself() -> None:
    judged = rules({}, is_own={"var/byok"}.__contains__, allow_secret=("var/",))
    assert judged.reason("var/byok", is_dir=True) is SECRET
    assert judged.reason("var/byok/notes.txt") is SECRET
    assert judged.reason("var/other.txt") is None


@pytest.mark.parametrize(
    "given", [(".py", ".D.TS"), ("py", "d.ts"), ("*.py", "*.d.ts")]
)
def test_ignore_other_extensions_than_the_wanted_ones(given: tuple[str, ...]) -> None:
    judged = rules({".gitignore": "x.py"}, extensions=given)
    assert judged.reason("a/b.PY") is None
    assert judged.reason("a.d.ts") is None
    assert judged.reason("a.ts") is SkipReason.EXTENSION
    assert judged.reason("a", is_dir=True) is None
    assert judged.reason("x.py") is IGNORED


def test_a_changed_ignore_file_counts_after_forgetting() -> None:
    held = {".gitignore": b"x\n", "a/.gitignore": b"y\n"}
    judged = Rules(held.get)
    assert judged.reason("a/b/y") is IGNORED
    held.clear()
    judged.forget("a")
    assert judged.reason("a/b/y") is None
    assert judged.reason("a/b/x") is IGNORED
    judged.forget("")
    assert judged.reason("a/b/x") is None


@pytest.mark.case("B71")
@pytest.mark.parametrize(
    "content",
    [
        b"*a" * 8 + b"*b",
        b"a/**/b/**/" * 12,
        b"*a*a*a\n" * 1_000,
        b"x\n" * 1_000_000,
        b"x" * 200_000,
        b"[z-a]\n\\\n[a-\\]]\n[a\n[[:x:]]\n",
        b"a\0b\n\0\n",
        b"\xff\xfe*\xff\n",
    ],
    ids=["stars", "deep", "lines", "million", "long", "malformed", "nul", "bytes"],
)
def test_no_ignore_file_stalls(content: bytes) -> None:
    judged = Rules({".gitignore": content + b"\nlast\n"}.get)
    names = ["a" * 60, "a" * 255, "/".join("a" * 100), "a/b/" * 30 + "c"]
    began = time.process_time()
    for number in range(5):
        for name in names:
            judged.reason(f"{number}{name}")
    assert time.process_time() - began < 2


def test_ignore_drops_a_malformed_line_only() -> None:
    judged = rules({".gitignore": "[a\n[[:nope:]]\n\\\n/\n!\n[z-a]\n\n# c\nlast\n"})
    assert judged.reason("last") is IGNORED
    assert judged.reason("a") is None


def test_ignore_file_that_is_too_long_is_cut_and_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = {".gitignore": "first\n" + "x\n" * 1_000 + "last\n"}
    with caplog.at_level(logging.WARNING):
        judged = rules(files)
        assert judged.reason("first") is IGNORED
        assert judged.reason("last") is None
        judged.forget("")
        assert judged.reason("first") is IGNORED
    assert len(caplog.records) == 1


@pytest.mark.case("B71", "B72")
def test_ignore_file_beyond_a_set_of_re2_keeps_its_rules_and_the_secret_ones() -> None:
    for line in ("?" * 900, "*a" * 450, "[[:nope:]]"):
        judged = rules({".gitignore": f"{line}\n" * 70 + "!.env\nlast\n"})
        assert judged.reason("last") is IGNORED
        assert judged.reason(".env") is SECRET
        assert judged.reason("src/id_rsa") is SECRET
        assert judged.reason("src/a.py") is None


def test_ignore_lines_that_cannot_be_read_are_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = {"a/.gitignore": "[[:nope:]]\n*.log\n", "b/.gitignore": "*.log\n"}
    with caplog.at_level(logging.WARNING):
        judged = rules(files)
        assert judged.reason("a/x.log") is IGNORED
        assert judged.reason("b/x.log") is IGNORED
        [note] = judged.notes_on("a/x.py")
        judged.forget("a")
        assert judged.notes_on("a/x.py") == []
        assert judged.reason("a/x.log") is IGNORED
    assert "a/.gitignore" in note
    assert "[[:nope:]]" in note
    assert judged.notes_on("b/x.py") == []
    assert judged.notes_on("ab.py") == []
    assert len(caplog.records) == 1


@pytest.mark.slow
def test_ignore_total_of_rules_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    many = "".join(f"{number}x\n" for number in range(900))
    deep = "a/b/c/d/e/f/g/"
    files = {deep[: 2 * n] + ".gitignore": f"{many}file{n}\n" for n in range(8)}
    judged = rules(files, noise=())
    assert judged.reason(f"{deep}file0") is IGNORED
    assert judged.reason(f"{deep}file7") is None
    assert "too many rules" in caplog.text


@pytest.mark.slow
def test_ignore_total_of_rules_in_many_folders_is_limited(
    caplog: pytest.LogCaptureFixture,
) -> None:
    many = "".join(f"{number}x\n" for number in range(900)) + "file\n"
    judged = rules({f"{n}/.gitignore": many for n in range(60)})
    assert judged.reason("0/file") is IGNORED
    assert [judged.reason(f"{n}/file") for n in range(60)][-1] is None
    assert "too many rules" in caplog.text
    judged.forget("")
    assert judged.reason("59/file") is IGNORED


@pytest.mark.parametrize("tool", ["git", "rg"])
def test_ignore_agrees_with_others_on_an_ordinary_tree(
    tmp_path: Path, tool: str
) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool} on this machine")
    files = {
        ".gitignore": "*.py[cod]\n*~\n/build/\n!keep~\ntmp\ndocs/_build/\n**/gen/*.c\n",
        "a/.gitignore": "!*.pyc\n/only\ngen/**/deep\n",
        "b/.gitignore": "*\n!.gitignore\n!*.md\n",
    }
    paths = [
        *("x.pyc", "a/x.pyc", "a/x.pyo", "y~", "keep~", "build/x", "a/build/x"),
        *("tmp", "a/b/tmp/x", "docs/_build/x", "a/docs/_build/x", "b/x.c", "b/x.md"),
        *("gen/x.c", "a/b/gen/x.c", "a/only", "a/c/only", "a/gen/deep", "b/c/x.md"),
        *("a/gen/p/q/deep/x", "Makefile"),
    ]
    make(tmp_path, files, paths)
    judged = rules(files, noise=())
    mine = {path for path in [*paths, *files] if judged.reason(path)}
    everything = {*paths, *files}
    theirs = ignored_by_git if tool == "git" else ignored_by_rg
    assert mine == theirs(tmp_path, everything)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="no git on this machine")
@settings(max_examples=60)
@given(root=FILES, a=FILES, deep=FILES)
def test_ignore_agrees_with_git(
    tmp_path_factory: pytest.TempPathFactory, root: str, a: str, deep: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "same-as-git"
    files = {".gitignore": root, "a/.gitignore": a, "a/b/.gitignore": deep}
    make(folder, files, PATHS)
    judged = rules(files, noise=())
    mine = {
        path
        for path in PATHS
        if judged.reason(path.rstrip("/"), is_dir=path.endswith("/"))
    }
    assert mine == ignored_by_git(folder, set(PATHS))


def make(root: Path, files: Mapping[str, str], paths: list[str]) -> None:
    for path in paths:
        place = root / path
        folder = place if path.endswith("/") else place.parent
        folder.mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            place.touch()
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    if not (root / ".git").exists() and shutil.which("git"):
        ran(root, "git", "init", "--quiet")
        (root / ".git/info/exclude").unlink(missing_ok=True)


def ignored_by_git(root: Path, paths: set[str]) -> set[str]:
    asked = "\0".join(path.removesuffix("/") for path in sorted(paths))
    told = ran(root, "git", "check-ignore", "--no-index", "--stdin", "-z", asked=asked)
    names = set(told.split("\0"))
    return {path for path in paths if path.removesuffix("/") in names}


def ignored_by_rg(root: Path, paths: set[str]) -> set[str]:
    shown = ran(root, "rg", "--no-config", "--files", "--hidden", "--no-require-git")
    return paths - set(shown.splitlines())


def ran(root: Path, *command: str, asked: str = "") -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        command, cwd=root, env=environment, input=asked.encode(), capture_output=True
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.decode()
