"""Commits are read with git, and nothing that a repository brings is run."""

import contextlib
import logging
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from byok.search.index.store.schema import pack_history, unpack_history
from byok.search.index.types import MOST_FILES, Commit, CommitHistory
from byok.search.index.workspace import git_history as history
from byok.search.index.workspace.git_history import head, origin, read_history
from tests.fakes.repository import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "root")


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


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


def test_git_history_keeps_a_name_that_is_no_utf8(repository: Repository) -> None:
    repository.commit("x", "caf\udce9")
    found = read(repository.root)
    assert found.commits[0].files == ("caf\\xe9",)
    assert unpack_history(pack_history(found)) == found


def test_git_history_counts_only_the_words_of_a_large_commit(
    repository: Repository,
) -> None:
    repository.commit("many", *(f"{n:03}" for n in range(MOST_FILES + 1)))
    repository.commit("just few enough", *(f"{n:03}" for n in range(MOST_FILES)))
    few, many = read(repository.root).commits
    assert (few.telling, few.touched, len(few.files)) == (True, MOST_FILES, MOST_FILES)
    assert (many.telling, many.touched) == (False, MOST_FILES + 1)
    assert (many.message, len(many.files)) == ("many", MOST_FILES)


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


def test_git_history_does_not_follow_a_file_that_was_edited_too(
    repository: Repository,
) -> None:
    repository.commit("new\n" * 99, "a.py")
    repository.git("mv", "a.py", "b.py")
    repository.commit("move", "b.py")
    assert read(repository.root).commits[-1].files == ("a.py",)


@pytest.mark.parametrize("older", [False, True])
def test_git_history_of_a_partial_clone_needs_no_content(
    repository: Repository,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
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
    git = program(tmp_path / "git", 'unset GIT_NO_LAZY_FETCH; exec git "$@"')
    caplog.set_level(logging.INFO)
    found = read_history(clone, git=git if older else None)
    assert found is not None
    assert [(c.message, set(c.files)) for c in found.commits] == [
        ("move", {"a.py", "b.py", "x.py"}), ("new", {"a.py", "b.py", "x.py"}),
    ]  # fmt: skip
    assert caplog.records == []
    assert subprocess.check_output(count, cwd=clone, text=True) == missing


def test_git_history_notes_a_bounded_number_of_renames(tmp_path: Path) -> None:
    """A commit that says it moved 200,000 files."""
    row = r"""'{printf "R100%cold%d%cnew%d%c", 0, NR, 0, NR, 0}'"""
    moves = f"yes x | head -n 200000 | awk {row}"
    record = r"printf '\0%040d\0007\000message\0\0' 2"
    git = program(tmp_path / "git", FAKE.format(log=f"{record}; {moves}"))
    found = read_history(tmp_path, git=git)
    assert found is not None
    [commit] = found.commits
    assert (commit.touched, len(commit.files)) == (400_000, MOST_FILES)


def test_git_history_of_a_folder_has_the_commits_that_touch_it(
    repository: Repository,
) -> None:
    repository.commit("both", "a.py", "sub/b.py")
    repository.commit("other", "a.py")
    found = read(repository.root / "sub")
    assert [(c.message, c.files) for c in found.commits] == [("both", ("b.py",))]


def test_git_history_leaves_out_merges(repository: Repository) -> None:
    repository.commit("base", "a")
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("side", "b")
    repository.git("checkout", "-q", "main")
    repository.commit("main", "c")
    repository.git("merge", "-q", "--no-ff", "-m", "merged", "side")
    messages = [commit.message for commit in read(repository.root).commits]
    assert sorted(messages) == ["base", "main", "side"]


def test_git_history_is_limited(repository: Repository) -> None:
    for n in range(3):
        repository.commit(str(n), "a")
    found = read_history(repository.root, limit=2)
    assert found is not None
    assert [commit.message for commit in found.commits] == ["2", "1"]


def test_the_origin_of_a_repository_is_its_own(repository: Repository) -> None:
    assert origin(repository.root) == ""
    repository.git("remote", "add", "origin", "https://h/name")
    other = repository.root / "other"
    other.write_text('[remote "origin"]\n url = https://h/included\n')
    repository.git("config", "include.path", str(other))
    repository.git("config", "url.https://elsewhere/.insteadOf", "https://h/")
    assert origin(repository.root) == "https://h/name"
    assert origin(repository.root / "none") == ""
    assert origin(repository.root, git="/no/git") == ""


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


def test_without_git_there_is_no_history(
    repository: Repository, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert read_history(repository.root, git=str(tmp_path / "git")) is None
    assert "did not start" in caplog.text


def test_git_history_of_another_users_repository_is_not_read(
    repository: Repository, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    text = "echo 'fatal: detected dubious ownership in repository' >&2; exit 128"
    assert read_history(repository.root, git=program(tmp_path / "git", text)) is None
    assert "another user" in caplog.text


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
    tmp_path: Path, log: str, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    git = program(tmp_path / "git", FAKE.format(log=log))
    limit = 1.0 if "sleep" in log else 30.0
    found = read_history(tmp_path, git=git, seconds=limit, most_bytes=2**18)
    assert found == CommitHistory(
        "1".zfill(40), (Commit("2".zfill(40), 7, "message", ("file",), 1),)
    )
    assert trouble in caplog.text


@pytest.mark.parametrize(
    "log", ["exit 1", "printf junk; exit 1", "printf '\\0a\\0'; exit 1"]
)
def test_a_git_that_says_nothing_of_use_gives_no_history(
    tmp_path: Path, log: str
) -> None:
    git = program(tmp_path / "git", FAKE.format(log=log))
    assert read_history(tmp_path, git=git) is None


def test_git_history_cuts_a_time_outside_of_the_calendar(tmp_path: Path) -> None:
    record = r"printf '\0%040d\00099999999999999999999\000m\0\0\nM\0f\0' 2"
    git = program(tmp_path / "git", FAKE.format(log=record))
    found = read_history(tmp_path, git=git)
    assert found is not None
    assert found.commits[0].time == 253_402_300_799


@pytest.mark.case("B118")
@pytest.mark.parametrize("kind", ["fifo", "socket"])
@pytest.mark.parametrize("setting", ["mailmap.file", "diff.orderFile"])
def test_a_pipe_that_the_configuration_names_costs_no_history(
    repository: Repository, setting: str, kind: str, tmp_path: Path
) -> None:
    commit = repository.commit("one", "a.txt")
    repository.git("config", setting, str(odd(tmp_path / "odd", kind)))
    assert read(repository.root).head == commit


@pytest.mark.slow
@pytest.mark.case("B118")
@pytest.mark.parametrize("kind", ["fifo", "socket"])
@pytest.mark.parametrize(
    "place",
    [
        *("include.path", ".git/packed-refs", ".git/commondir", ".git/shallow"),
        *(".git/info/grafts", ".git/objects/info/alternates"),
        *(".git/objects/info/commit-graph", ".mailmap"),
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
    assert history._QUICK == 2
    found, at = read_history(repository.root), head(repository.root)
    assert (found and found.head) == at
    assert time.monotonic() - began < 20  # and not 30 for the log


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
    older: bool,
) -> None:
    # Before 2.44 git does not know that variable.
    git = program(tmp_path / "git", 'unset GIT_NO_LAZY_FETCH; exec git "$@"')
    used = git if older else None
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
    found = read_history(repository.root, git=used)
    assert found is not None
    assert [commit.message for commit in found.commits] == ["two", "one"]
    (repository.root / ".git/objects" / lost[:2] / lost[2:]).unlink()
    read_history(repository.root, git=used)
    assert head(repository.root, git=used)
    assert not marker.exists()
