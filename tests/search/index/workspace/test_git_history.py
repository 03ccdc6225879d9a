"""Commits are read with git, and nothing that a repository brings is run."""

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.search.index.store.schema import pack_history, unpack_history
from byok.search.index.types import MAX_COMMIT_FILES, Commit, CommitHistory
from byok.search.index.workspace import git_history as history
from byok.search.index.workspace.git_history import (
    MAX_MESSAGE_CHARS,
    Commits,
    ReadCommit,
    Rename,
    clean_message,
    follow_renames,
    head,
    origin,
    read_history,
    repository_name,
)
from tests.fakes.clock import check_linear
from tests.fakes.engines import engine, indexed
from tests.fakes.patience import until
from tests.fakes.project import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "root")


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def fake_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what puts a script of this text before the installed git."""
    folder = tmp_path / "bin"

    def install(text: str) -> None:
        folder.mkdir()
        program(folder / "git", text)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return install


# Before 2.44 git does not know that variable.
OLDER_GIT = f'unset GIT_NO_LAZY_FETCH; exec {shutil.which("git")} "$@"'


def read(root: Path) -> CommitHistory:
    found = read_history(root)
    assert found is not None
    return found


def test_git_history_gives_commits_newest_first_with_their_files(
    repository: Repository,
) -> None:
    first = repository.commit("one\n\nwith a body", "a.py", "sub/b.py")
    second = repository.commit("two", "a.py")
    found = read(repository.root)
    assert found.head == second == head(repository.root)
    assert [(c.hash, c.message, c.files) for c in found.commits] == [
        (second, "two", ("a.py",)),
        (first, "one\nwith a body", ("a.py", "sub/b.py")),
    ]
    assert all(abs(c.time - time.time()) < 3600 for c in found.commits)


def test_git_history_reads_odd_names_and_messages_unchanged(
    repository: Repository,
) -> None:
    names = ("\nfirst", "new\nline", "-rf", "tab\there", "ünï", "a b")
    repository.commit("", *names)
    repository.commit("")
    repository.commit("\x01 \x1b %H %x00 end", "z")
    last, empty, named = read(repository.root).commits
    assert (last.message, last.files) == ("%H %x00 end", ("z",))
    assert (empty.message, empty.files, empty.telling) == ("", (), False)
    assert set(named.files) == set(names)


def test_git_history_counts_only_the_words_of_a_large_commit(
    repository: Repository,
) -> None:
    repository.commit("many", *(f"{n:03}" for n in range(MAX_COMMIT_FILES + 1)))
    repository.commit("just few enough", *(f"{n:03}" for n in range(MAX_COMMIT_FILES)))
    few, many = read(repository.root).commits
    assert (few.telling, few.touched, len(few.files)) == (
        True,
        MAX_COMMIT_FILES,
        MAX_COMMIT_FILES,
    )
    assert (many.telling, many.touched) == (False, MAX_COMMIT_FILES + 1)
    assert (many.message, len(many.files)) == ("many", MAX_COMMIT_FILES)


def test_git_history_follows_files_that_were_moved_unchanged(
    repository: Repository,
) -> None:
    repository.commit("new", "a.py", "x.py")
    repository.commit("more", "a.py")
    (repository.root / "lib").mkdir()
    for name in ("empty1", "lib/empty2"):
        (repository.root / name).touch()
    repository.commit("empty")
    repository.git("mv", "a.py", "lib/b.py")
    repository.git("mv", "empty1", "lib/empty1")
    move = repository.commit("move")
    repository.git("config", "diff.renames", "copies")
    found = read(repository.root)
    assert found.head == move
    assert [(c.message, set(c.files), c.touched) for c in found.commits] == [
        ("move", {"a.py", "lib/b.py", "empty1", "lib/empty1"}, 4),
        ("empty", {"empty1", "lib/empty2"}, 2),  # all empty files are alike
        ("more", {"a.py", "lib/b.py"}, 1),
        ("new", {"a.py", "lib/b.py", "x.py"}, 2),
    ]
    assert unpack_history(pack_history(found)) == found
    below = read(repository.root / "lib")
    assert [(c.message, c.files) for c in below.commits] == [
        ("move", ("b.py", "empty1")), ("empty", ("empty2",)),
    ]  # fmt: skip


@pytest.mark.parametrize("older", [False, True])
def test_git_history_of_a_partial_clone_needs_no_content(
    repository: Repository,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    fake_git: Callable[[str], None],
    older: bool,
) -> None:
    """Only names of objects are compared; nothing is fetched, and nothing fails."""
    repository.commit("new", "a.py", "x.py")
    repository.git("mv", "a.py", "b.py")
    repository.commit("move", "x.py")
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    repository.git(
        "clone", "-q", "--filter=blob:none", "--no-checkout",
        f"file://{repository.root}", str(clone),
    )  # fmt: skip
    count = ("git", "rev-list", "--objects", "--all", "--missing=print")
    missing = subprocess.check_output(count, cwd=clone, text=True)
    assert missing.count("?") == 2
    if older:
        fake_git(OLDER_GIT)
    caplog.set_level(logging.INFO)
    found = read_history(clone)
    assert found is not None
    assert [(c.message, set(c.files)) for c in found.commits] == [
        ("move", {"a.py", "b.py", "x.py"}), ("new", {"a.py", "b.py", "x.py"}),
    ]  # fmt: skip
    assert caplog.records == []
    assert subprocess.check_output(count, cwd=clone, text=True) == missing


def test_the_origin_of_a_repository_is_its_own(
    repository: Repository, fake_git: Callable[[str], None]
) -> None:
    assert origin(repository.root) == ""
    repository.git("remote", "add", "origin", "https://h/name")
    other = repository.root / "other"
    other.write_text('[remote "origin"]\n url = https://h/included\n')
    repository.git("config", "include.path", str(other))
    repository.git("config", "url.https://elsewhere/.insteadOf", "https://h/")
    assert origin(repository.root) == "https://h/name"
    assert origin(repository.root / "none") == ""
    fake_git("exit 1")
    assert origin(repository.root) == ""


def test_a_folder_without_history_has_none_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    empty = Repository(tmp_path / "empty").root
    plain = tmp_path / "plain"
    plain.mkdir()
    for root in (empty, plain, tmp_path / "gone"):
        assert head(root) is None
        assert read_history(root) is None
    assert len(caplog.records) == 3
    assert "no git repository" in caplog.text


FAKE = """case "$*" in
*rev-parse*) printf '\\n%040d\\n' 1 ;;
*) {log} ;;
esac"""
RECORD = r"printf '\0%040d\0007\000message\0\0\nM\0file\0' 2"


@pytest.mark.parametrize(
    ("log", "trouble"),
    [
        (f"{RECORD}; {RECORD}; exec sleep 60", "not done"),
        (f"{RECORD}; {RECORD}; exec cat /dev/zero", "more than"),
        (f"{RECORD}; {RECORD}; exit 3", "exit 3"),
    ],
    ids=["hangs", "never ends", "fails"],
)
def test_what_was_read_before_git_broke_off_is_kept(
    tmp_path: Path,
    log: str,
    trouble: str,
    caplog: pytest.LogCaptureFixture,
    fake_git: Callable[[str], None],
) -> None:
    fake_git(FAKE.format(log=log))
    root = tmp_path / "root"
    root.mkdir()
    limit = 1.0 if "sleep" in log else 30.0
    found = read_history(root, seconds=limit, max_bytes=2**18)
    assert found == CommitHistory(
        "1".zfill(40), (Commit("2".zfill(40), 7, "message", ("file",), 1),)
    )
    assert trouble in caplog.text


@pytest.mark.case("B118")
@pytest.mark.parametrize(
    ("setting", "kind"), [("mailmap.file", "fifo"), ("diff.orderFile", "socket")]
)
def test_a_pipe_that_the_configuration_names_costs_no_history(
    repository: Repository, setting: str, kind: str, tmp_path: Path
) -> None:
    commit = repository.commit("one", "a.txt")
    repository.git("config", setting, str(odd(tmp_path / "odd", kind)))
    assert read(repository.root).head == commit


@pytest.mark.slow
@pytest.mark.case("B118")
@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("include.path", "fifo"),
        (".git/packed-refs", "socket"),
        (".git/shallow", "socket"),
        (".git/info/grafts", "fifo"),
        (".mailmap", "socket"),
    ],
)
def test_a_pipe_that_git_must_read_is_given_up_soon(
    repository: Repository, place: str, kind: str, tmp_path: Path
) -> None:
    repository.commit("one", "a.txt")
    if place == "include.path":
        repository.git("config", place, str(odd(tmp_path / "odd", kind)))
    else:
        (repository.root / place).parent.mkdir(exist_ok=True)
        (repository.root / place).unlink(missing_ok=True)
        odd(repository.root / place, kind)
    began = time.monotonic()
    assert history._QUERY_SECONDS == 2
    found, at = read_history(repository.root), head(repository.root)
    assert (found and found.head) == at
    assert time.monotonic() - began < 30  # for which the log is waited for


def odd(place: Path, kind: str) -> Path:
    if kind == "fifo":
        os.mkfifo(place)
    else:
        with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(place.parent):
            listener.bind(place.name)  # a whole path may be too long
    return place


@pytest.mark.case("B53")
def test_a_git_in_the_workspace_is_not_run(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("one", "a.txt")
    marker = tmp_path / "marker"
    program(repository.root / "git", f"touch {marker}")
    monkeypatch.setenv("PATH", f"{repository.root}{os.pathsep}{os.environ['PATH']}")
    assert len(read(repository.root).commits) == 1
    assert not marker.exists()


@pytest.mark.parametrize("older", [False, True])
def test_git_history_runs_no_program_that_a_repository_names(
    repository: Repository,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fake_git: Callable[[str], None],
    older: bool,
) -> None:
    marker = tmp_path / "marker"
    bad = program(tmp_path / "bad", f"touch {marker}")
    repository.commit("one", "a.txt", ".gitattributes")
    (repository.root / ".gitattributes").write_text("* diff=bad filter=bad\n")
    repository.commit("two", "a.txt")
    lost = repository.git("rev-parse", "HEAD~1^{tree}")
    for name, value in {
        "core.fsmonitor": bad,
        "core.pager": bad,
        "core.sshCommand": bad,
        "core.gitProxy": bad,
        "core.hooksPath": str(tmp_path),
        "diff.external": bad,
        "diff.bad.command": bad,
        "diff.bad.textconv": bad,
        "filter.bad.clean": bad,
        "filter.bad.smudge": bad,
        "gpg.program": bad,
        "log.showSignature": "true",
        "alias.log": f"!{bad}",
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{bad}",
        "remote.origin.uploadpack": bad,
        "protocol.ext.allow": "always",
    }.items():
        repository.git("config", name, value)
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND"):
        monkeypatch.setenv(name, bad)
    if older:
        fake_git(OLDER_GIT)
    found = read_history(repository.root)
    assert found is not None
    assert [commit.message for commit in found.commits] == ["two", "one"]
    (repository.root / ".git/objects" / lost[:2] / lost[2:]).unlink()
    read_history(repository.root)
    assert head(repository.root)
    assert not marker.exists()


# Commits from before a file was moved count for the path that it has now


def commit(files: str, *moved: tuple[str, str], touched: int = 0) -> ReadCommit:
    names = tuple(files.split())
    read = Commit("", 0, "", names, touched or len(names))
    return ReadCommit(read, [Rename(*pair) for pair in moved])


MOVE = commit("a b", ("a", "b"))


AGAIN = commit("b c", ("b", "c"))
SWAP = commit("a b", ("a", "b"), ("b", "a"))
MANY = MAX_COMMIT_FILES + 1


@pytest.mark.parametrize(
    ("commits", "files"),
    [
        ([commit("b"), MOVE, commit("a"), commit("a x")], "b|a b|a b|a x b"),
        ([AGAIN, commit("b"), MOVE, commit("a")], "b c|b c|a b c|a c"),
        # A new file in the old place is another one.
        ([commit("a"), MOVE, commit("a")], "a|a b|a b"),
        # `b` was something else until `a` took its place.
        ([AGAIN, MOVE, commit("b"), commit("a")], "b c|a b c|b|a c"),
        ([SWAP, commit("a"), commit("b")], "a b|a b|b a"),
        # Of files with fewer than five commits; the move itself is one of them.
        ([*[commit("b")] * 3, MOVE, commit("a")], "b|b|b|a b|a b"),
        ([*[commit("b")] * 4, MOVE, commit("a")], "b|b|b|b|a b|a"),
        # Renames of large commits count, but their files do not.
        ([commit("a b", ("a", "b"), touched=MANY), commit("a")], "a b|a b"),
        ([MOVE, commit("a", touched=MANY)], "a b|a"),
    ],
)
def test_renames_add_the_present_path_to_older_commits(
    commits: list[ReadCommit], files: str
) -> None:
    found = follow_renames(commits)
    assert "|".join(" ".join(one.files) for one in found) == files


# Messages keep what they say about code and lose what they say to machines


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("Fix the parser\n", "Fix the parser"),
        ("Fix it (#12)\n\nSee #13 there\n", "Fix it\nSee there"),
        ("One\n\nSigned-off-by: A <a@b.org>\nChange-Id: I1\n", "One"),
        ("One\n\nFixes #12\nCloses: 13\n", "One"),
        ("Read https://example.org/x?y now", "Read now"),
        ("One\n\n```\ncode()\n```\nTwo", "One\nTwo"),
        ("One\n\n    indented()\n> said\n| a | b |\nTwo", "One\nTwo"),
        ("One\n\nReviewers: A, B\nmore names", "One"),
        ("One\nTest Plan: make check\nall green", "One"),
        ("Reviewers are named now", "Reviewers are named now"),
        ("a\x1b[31mb\x00c\u2028d", "a [31mb c d"),
        ("Revert 0123456789abcdef0123", "Revert"),
        ("", ""),
        ("\n \n", ""),
    ],
)
def test_commit_message_text_is_cleaned(message: str, kept: str) -> None:
    assert clean_message(message) == kept


@given(st.text())
def test_commit_message_text_has_short_lines_without_control_characters(
    text: str,
) -> None:
    found = clean_message(text)
    assert len(found) <= MAX_MESSAGE_CHARS
    assert all(line.isprintable() or line for line in found.split("\n"))
    assert not {chr(n) for n in (*range(10), *range(11, 32), 127)} & set(found)


@pytest.mark.parametrize(
    "piece", ["a", "a@", "fix ", " ", "a-", "#1", "abcdef01", "\t"]
)
def test_commit_message_text_takes_linear_time(piece: str) -> None:
    check_linear(lambda size: clean_message(f"fix{piece * size}x"), 1000)


# The history of a workspace is as new as the repository that it is in


@pytest.fixture
def made(tmp_path: Path) -> Repository:
    made = Repository(tmp_path.resolve() / "repo")
    made.commit("one", "pkg/a.py")
    return made


@pytest.mark.parametrize("place", ["pkg", "../tree"])
async def test_a_question_knows_the_newest_commit_of_any_work_tree(
    tmp_path: Path, made: Repository, place: str
) -> None:
    made.git("worktree", "add", "-q", "../tree")
    root = (made.root / place).resolve()
    async with indexed(tmp_path / "data", root) as opened:
        [space] = opened.workspaces
        await until(lambda: opened.history_of(space) is not None)
        newest = Repository(root).commit("two", "b.py")

        async def known() -> bool:
            await opened.detect_changes([space])
            history = opened.history_of(space)
            return history is not None and history.head == newest

        await until(known)


async def test_commits_of_a_repository_that_is_made_later_are_found(
    tmp_path: Path, made: Repository
) -> None:
    root = made.root / "pkg"
    (made.root / ".git").rename(tmp_path / "away")
    async with indexed(tmp_path / "data", root) as opened:
        [space] = opened.workspaces
        commits = opened._syncs[space.id].commits
        await until(lambda: commits._marks is not None)
        assert commits.history is None
        assert not await commits.are_new()
        (tmp_path / "away").rename(made.root / ".git")
        assert await commits.are_new()
        await asyncio.gather(commits.read(), commits.read())
        assert commits.history is not None
        assert not await commits.are_new()


@pytest.mark.parametrize(("failures", "again"), [(1, True), (2, True), (3, False)])
async def test_commits_are_read_again_where_git_was_too_slow(
    tmp_path: Path,
    made: Repository,
    monkeypatch: pytest.MonkeyPatch,
    failures: int,
    again: bool,
) -> None:
    """The third failure in a row is believed until the repository changes."""
    async with engine(tmp_path / "data") as opened:
        commits = Commits(1, made.root, opened.store)
        with monkeypatch.context() as slow:
            slow.setattr(
                "byok.search.index.workspace.git_history.head", lambda root: None
            )
            for _ in range(failures):
                await commits.read()
        assert commits.history is None
        assert await commits.are_new() is again
        await commits.read()
        assert commits.history is not None
        assert not await commits.are_new()


@pytest.mark.parametrize(
    "address",
    [
        "https://git.example/owner/name",
        "https://git.example/owner/name.git",
        "https://user:token@git.example/Owner/Name.git/",
        "http://git.example:8080/owner/name",
        "ssh://git@git.example:2222/owner/name.git",
        "git://git.example/owner/name",
        "git@git.example:owner/name.git",
        "git.example:/owner/name",
        "GIT.example:owner/name\n",
    ],
)
def test_one_repository_has_one_name(address: str) -> None:
    assert repository_name(address) == "git.example/owner/name"


@pytest.mark.parametrize(
    "address",
    [
        *[
            "",
            "/srv/git/name.git",
            "../name",
            "file:///srv/name",
            r"C:\name",
            "C:/name",
        ],
        *["https://", "https://git.example", "https://git.example/.git", "https://[x"],
        *["ext::sh -c touch% /tmp/x", "git.example:", "x" * 501, "a@b:c\0d"],
    ],
)
def test_what_is_no_address_has_no_name(address: str) -> None:
    assert repository_name(address) == ""
