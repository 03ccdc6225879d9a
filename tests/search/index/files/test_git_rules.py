"""Ignore rules from outside a workspace, held against git itself."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings

from byok.search.index.files.ignore import IGNORE_FILES, rules_outside
from byok.search.index.files.roots import rules_of
from byok.search.index.types import IndexOptions, SkipReason
from tests.fakes.ignore_files import FILES, PATHS

IGNORED = SkipReason.IGNORED
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own folder, which git and byok both take for it."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    return folder


def git(folder: Path, *words: str, asked: str = "") -> str:
    kept = {name: os.environ[name] for name in ("PATH", "HOME")}
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"}
    names |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env={**kept, **names, "GIT_CONFIG_NOSYSTEM": "1"},
        input=asked.encode(),
        capture_output=True,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.decode()


def repository(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet")
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def judged(root: Path, *paths: str) -> list[SkipReason | None]:
    rules = rules_of(root, IndexOptions())
    return [rules.reason(path.rstrip("/"), is_dir=path[-1] == "/") for path in paths]


def test_git_ignore_rules_of_the_repository_count_in_a_folder_of_it(
    tmp_path: Path, home: Path
) -> None:
    rules = {".gitignore": "generated/\n*.gen.py\n", ".augmentignore": "drafts/\n"}
    repo = repository(tmp_path / "repo", {**rules, "pkg/.gitignore": "!keep.gen.py\n"})
    (repo / "pkg/web").mkdir()
    paths = ("generated/", "a.gen.py", "keep.gen.py", "drafts/", "a.py")
    expected = [IGNORED, IGNORED, None, IGNORED, None]
    assert judged(repo / "pkg/web", *paths) == expected
    (repo / ".gitignore").unlink()
    assert judged(repo / "pkg/web", "generated/") == [None]


@pytest.mark.parametrize("configured", [True, False])
def test_git_ignore_file_of_the_user_counts(
    tmp_path: Path, home: Path, configured: bool
) -> None:
    repo = repository(tmp_path / "repo", {".gitignore": "!kept.txt\n"})
    own = home / ("my-ignores" if configured else ".config/git/ignore")
    own.parent.mkdir(parents=True, exist_ok=True)
    if configured:
        (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/my-ignores\n")
    (home / "dotfile").write_text("*.txt\n")
    own.symlink_to(home / "dotfile")
    assert judged(repo, "a.txt", "kept.txt", "a.py") == [IGNORED, None, None]
    plain = tmp_path / "plain"
    plain.mkdir()
    assert judged(plain, "a.txt") == [None]  # as git, which is not asked there


def test_git_config_of_a_repository_is_not_read(tmp_path: Path, home: Path) -> None:
    repo = repository(tmp_path / "repo", {})
    (home / "private").write_text("*.py\n")
    git(repo, "config", "core.excludesFile", str(home / "private"))
    assert judged(repo, "a.py") == [None]


def test_git_exclude_file_counts_in_every_worktree(tmp_path: Path, home: Path) -> None:
    repo = repository(tmp_path / "repo", {"a.py": ""})
    git(repo, "add", "-A")
    git(repo, "commit", "--quiet", "-m", "one")
    git(repo, "worktree", "add", "--quiet", "../tree")
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/exclude").write_text("excluded.py\n")
    (tmp_path / "tree/sub").mkdir()
    for root in (repo, tmp_path / "tree", tmp_path / "tree/sub"):
        assert judged(root, "excluded.py", "a.py") == [IGNORED, None]


@pytest.mark.parametrize(
    "link", ["", "gitdir:", "gitdir: //host/share", "gitdir: none", "x", "gitdir: \0"]
)
def test_git_link_to_no_repository_is_ignored(
    tmp_path: Path, home: Path, link: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / ".git").write_text(link)
    assert judged(tmp_path / "sub", "a.log", "a.py") == [IGNORED, None]


def test_git_ignore_file_that_is_a_pipe_does_not_block(
    tmp_path: Path, home: Path
) -> None:
    repo = repository(tmp_path / "repo", {"pkg/a.py": ""})
    os.mkfifo(repo / ".gitignore")
    names = [Path(rules.name).name for rules in rules_outside(repo, IGNORE_FILES)]
    assert ".gitignore" not in names
    assert judged(repo / "pkg", "a.py") == [None]


@pytest.mark.slow
@settings(max_examples=30)
@given(own=FILES, exclude=FILES, top=FILES, above=FILES, root=FILES)
def test_rules_from_outside_are_those_of_git(
    tmp_path_factory: pytest.TempPathFactory,
    own: str,
    exclude: str,
    top: str,
    above: str,
    root: str,
) -> None:
    base = tmp_path_factory.getbasetemp() / "outside-as-git"
    home = base / "user"
    (home / ".config/git").mkdir(parents=True, exist_ok=True)
    (home / ".config/git/ignore").write_text(own)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        patch.delenv("GIT_CONFIG_GLOBAL", raising=False)
        files = {".gitignore": top, "a/.gitignore": above, "a/ws/.gitignore": root}
        repo = repository(base / "repo", {**files, ".git/info/exclude": exclude})
        if git(repo, "check-ignore", "--no-index", "a/ws"):
            return  # declared although it is ignored
        asked = "\0".join(path.rstrip("/") for path in PATHS)
        for path in PATHS:
            if path.endswith("/"):
                (repo / "a/ws" / path).mkdir(parents=True, exist_ok=True)
        told = git(
            repo / "a/ws", "check-ignore", "--no-index", "--stdin", "-z", asked=asked
        )
        found = judged(repo / "a/ws", *PATHS)
    theirs = {path for path in PATHS if path.rstrip("/") in told.split("\0")}
    assert {path for path, why in zip(PATHS, found, strict=True) if why} == theirs
