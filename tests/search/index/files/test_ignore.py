"""Rules of a workspace, held against git itself."""

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
from hypothesis import strategies as st

from byok.search.index.files.gitignore import Patterns, pattern_lines
from byok.search.index.files.ignore import (
    Outside,
    Rules,
    rules_of,
    rules_outside,
)
from byok.search.index.types import IndexOptions, SkipReason

PATHS = [
    *("a/", "b/", "a/b/", "a/b/a/", "ab/", "ab/b/", "b/a/", "b/c d/", "b/a/b/"),
    *("c", "a/c", "a/b/c", "a/b/a/c", "ab/a", "ab/b/ab.c", "b/a/b/c", "b/c d/a b"),
    *("ab.c", "a/ab.c", "a/b/.a", "b/a/a-b", "b/a/b/[a]", "b/#a", "!b", "a/b/a/b.c "),
    *("ab/A", "ab/b/B.c", "b/c d/ü.c", "b/aab", "a/b/abab"),
]


# Ordinary patterns: pathspec reads odd character classes in its own way, and what
# lifts a folder also lifts what lies in it.
PIECES = st.sampled_from(["a", "b", "c", "ab", "*", ".", "-", "A", "?", "[ab]"])

SEGMENTS = st.lists(PIECES, min_size=1, max_size=4).map("".join)

LINES = st.tuples(
    st.sampled_from(["", "", "/"]),
    st.lists(SEGMENTS, max_size=4),
    st.sampled_from(["", "", "/", " "]),
).map(lambda parts: f"{parts[0]}{'/'.join(parts[1])}{parts[2]}")

FILES = st.lists(LINES, max_size=5).map("\n".join)

IGNORED, SECRET = SkipReason.IGNORED, SkipReason.SECRET


def rules(
    files: Mapping[str, str], outside: Sequence[Outside] = (), **options: Any
) -> Rules:
    held = {path: text.encode() for path, text in files.items()}
    return Rules(held.get, outside=lambda: outside, **options)


def test_augmentignore_stands_behind_gitignore_of_the_same_folder() -> None:
    files = {".gitignore": "gen/\n*.txt\n", ".augmentignore": "!gen/\ndocs/\n"}
    judged = rules({**files, "deep/.gitignore": "!docs/"})
    assert judged.reason("gen/a.py") is None
    assert judged.reason("a.txt") is IGNORED
    assert judged.reason("docs/a.md") is IGNORED
    assert judged.reason("deep/docs/a.md") is None


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


def test_ignore_other_extensions_than_the_wanted_ones() -> None:
    judged = rules({".gitignore": "x.py"}, extensions=(".py", "*.D.TS", "md"))
    assert judged.reason("a/b.PY") is None
    assert judged.reason("a.md") is None
    assert judged.reason("a.d.ts") is None
    assert judged.reason("a.ts") is SkipReason.EXTENSION
    assert judged.reason("a", is_dir=True) is None
    assert judged.reason("x.py") is IGNORED


@pytest.mark.parametrize(
    ("path", "pattern", "file", "line", "place"),
    [
        ("gen/deep/x.py", "gen/", ".gitignore", 3, ".augmentignore"),
        ("a/b/[x]*.txt", "*.txt", "a/.augmentignore", 1, "a/.augmentignore"),
        ("node_modules/x/y.js", "node_modules/", "", 0, ".augmentignore"),
        ("top.md", "/w/top.md", "/home/.ignore", 2, ".augmentignore"),
        ("a/.env", "", "", 0, "context.allow_secret"),
        ("a/x.css", "", "", 0, "context.extensions"),
        (".git/config", "", "", 0, ""),
        ("a/x.py", "", "", 0, ""),
    ],
)
def test_the_rule_that_leaves_out_a_path_is_named_with_its_cure(
    path: str,
    pattern: str,
    file: str,
    line: int,
    place: str,
) -> None:
    files = {".gitignore": "# made\n*.o\ngen/\n!x\n", "a/.augmentignore": "*.txt"}
    outside = [Outside("/home/.ignore", b"\n/w/top.md\r\n", "w")]
    wanted = ["py", "js", "txt", "md", ".env"]
    found = rules(files, outside, extensions=wanted).find_rule(path)
    assert (found.pattern, found.file, found.line, found.place) == (
        pattern,
        file,
        line,
        place,
    )
    if place.startswith("context."):
        cured = {"allow_secret": (), "extensions": wanted}
        cured[place.removeprefix("context.")] = [*wanted, found.cure]
        assert rules(files, outside, **cured).reason(path) is None
    elif place:
        more = {place: f"{files.get(place, '')}\n{found.cure}\n"}
        assert rules({**files, **more}, outside, extensions=wanted).reason(path) is None


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


def git(folder: Path, *words: str, asked: str = "", home: object = None) -> str:
    kept = {"PATH": os.environ["PATH"], "HOME": str(home or os.environ["HOME"])}
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
        git(root, "init", "--quiet", home=root)
        (root / ".git/info/exclude").unlink(missing_ok=True)


def ignored_by_git(root: Path, paths: set[str]) -> set[str]:
    asked = "\0".join(path.removesuffix("/") for path in sorted(paths))
    words = ("check-ignore", "--no-index", "--stdin", "-z")
    told = git(root, *words, asked=asked, home=root)
    names = set(told.split("\0"))
    return {path for path in paths if path.removesuffix("/") in names}


# Lines and globs of an ignore file, as git reads them


@pytest.mark.parametrize(
    ("line", "hits", "misses"),
    [
        ("a", ["a", "x/a"], ["ab"]),
        ("/a", ["a"], ["x/a"]),
        ("a/b", ["a/b"], ["x/a/b", "b"]),
        ("*.c", ["a.c", "x/.c", "a.b.c"], ["a.cc"]),
        ("*.tar.gz", ["a.tar.gz"], ["a.gz"]),
        ("a*", ["a", "abc", "x/ab"], ["ba"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("?.c", ["u.c"], ["ü.c"]),  # of two bytes
        ("??.c", ["ü.c", "ab.c"], ["a.c", "€.c"]),
        ("[!a].c", ["b.c"], ["a.c", "ü.c"]),
        ("ü*", ["ü", "x/üb"], ["u"]),
        ("a/*", ["a/b"], ["a"]),
        ("a/*/c", ["a/b/c"], ["a/c", "a/b/b/c"]),
        ("**/a", ["a", "x/a", "x/y/a"], ["xa"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "ab"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("a/**/**/b", ["a/b", "a/x/b"], ["ab"]),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("x/a**b", ["x/ab", "x/a1b"], ["x/a1/b"]),
        ("**/a/**/b/*.c", ["a/b/x.c", "y/a/z/b/.c"], ["a/b/z/x.c"]),
        ("*a*b*", ["ab", "xaybz"], ["ba"]),
        ("*a*ab", ["aab", "aaab", "xaaxab"], ["ab", "aabx"]),
        (r"\!a", ["!a"], ["a"]),
        (r"\#a", ["#a"], ["a"]),
        (r"a\*", ["a*"], ["ab"]),
        ("[ab]c", ["ac", "bc"], ["cc", "[ab]c"]),
        ("[!ab]c", ["cc"], ["ac"]),
        ("[^a-y]c", ["zc"], ["bc"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("x/[!a]", ["x/b"], ["x/a"]),
        ("[[:digit:]]*", ["1a", "x/1"], ["a1", ":", "d"]),
        ("[![:upper:]_].c", ["a.c"], ["A.c", "_.c"]),
        ("[[:space:][:lower:]]/*", ["a/b", " /b"], ["A/b", "b"]),
        ("[:alpha:]", ["a", ":", "p"], ["b", "[:alpha:]"]),
        (r"[\]a]/b", ["]/b", "a/b"], ["b/b", "\\/b"]),
        (r"[a\\]", ["a", "\\"], ["b"]),
        (r"[a\]", [], ["a", "[a]"]),
        (r"a\]", ["a]"], ["a"]),
        ("[a", [], ["[a", "a"]),
        ("a\\", [], ["a", "a\\"]),
        ("ü?", ["üa"], ["ü"]),
        ("a\nb", ["a\nb"], ["a"]),
        ("Icon\r", ["Icon\r", "x/Icon\r"], ["Icon"]),  # macOS' icon of a folder
        ("a\t", ["a\t"], ["a"]),
    ],
)
def test_gitignore_line_matches_what_git_matches(
    line: str, hits: list[str], misses: list[str]
) -> None:
    patterns = Patterns([line])
    assert [path for path in hits if not patterns.verdict(path, is_dir=False)] == []
    assert [path for path in misses if patterns.verdict(path, is_dir=False)] == []


@pytest.mark.parametrize("line", ["a/**", "/a/** ", "**/a/**", "a/**/"])
def test_gitignore_line_for_all_in_a_folder_still_enters_the_folder(
    line: str,
) -> None:
    patterns = Patterns([line, "!a/kept"])
    assert patterns.verdict("a", is_dir=True) is None
    assert patterns.verdict("a/b", is_dir=True)
    assert patterns.verdict("a/kept", is_dir=False) is False


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"\xef\xbb\xbfa\r\nb\n\n# c\n #d", ["a", "b", " #d"]),
        (b"a  \n   \nd\t\n", ["a  ", "d\t"]),
        (b"a\x85b\x0bc\rd\n", ["a\udc85b\x0bc\rd"]),
        (b"", []),
    ],
)
def test_gitignore_lines_are_split_like_git(content: bytes, lines: list[str]) -> None:
    assert pattern_lines(content) == lines


# Each is more than one set of RE2 can hold.
MANY = {
    "question marks": ["?" * 900] * 72,
    "question marks of many lengths": ["?" * n for n in range(800, 880)],
    "stars": ["*a" * 480] * 68,
    "generated": [f"**/generated_{n}/**/*.{n}.tmp" for n in range(1_000)],
    "literals": [f"{n:04}" + "x" * 900 for n in range(72)],
    "classes": ["[!a]" * 249 + "b"] * 64,
    "folders": [f"**/a{n}/" * 80 for n in range(100)],
}


@pytest.mark.case("B71")
def test_gitignore_lines_count_however_many_there_are(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The first, the last, and a later one that lifts an earlier one."""
    wrong = {}
    for name, lines in MANY.items():
        patterns = Patterns(["first", "both", *lines, "last", "!both"])
        found = [
            patterns.verdict(path, is_dir=False)
            for path in ("first", "last", "both", "other", "d/first", "d/both")
        ]
        if found != [True, True, False, None, True, False] or patterns.unreadable:
            wrong[name] = found
    assert wrong == {}
    assert capfd.readouterr() == ("", "")  # RE2 would write past the log


# Ignore rules from outside a workspace, held against git itself


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own folder, which git and byok both take for it."""
    if shutil.which("git") is None:
        pytest.skip("no git on this machine")
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    return folder


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


def test_other_work_trees_are_left_out_below_one_that_has_files(
    tmp_path: Path, home: Path
) -> None:
    """Agents make them there; another repository below is part of the workspace."""
    repo = repository(tmp_path / "repo", {"a.py": ""})
    git(repo, "add", "-A")
    git(repo, "commit", "--quiet", "-m", "one")
    git(repo, "worktree", "add", "--quiet", ".agent/tree")
    repository(repo / "vendor", {"b.py": ""})
    below = ".agent/tree/a.py"
    rules = rules_of(repo.resolve(), IndexOptions())
    assert rules.reason(below) is rules.reason(".agent/tree", is_dir=True)
    assert rules.reason(below) is SkipReason.WORK_TREE
    assert rules.find_rule(below).words == ""
    assert judged(repo, "a.py", "vendor/b.py") == [None, None]
    assert judged(repo / ".agent/tree", "a.py") == [None]

    bare = tmp_path / "bare"
    git(tmp_path, "clone", "--quiet", "--bare", str(repo), "bare/.bare")
    (bare / ".git").write_text("gitdir: ./.bare\n")
    git(bare / ".bare", "worktree", "add", "--quiet", "../main")
    assert judged(bare, "main/a.py") == [None]


def test_git_ignore_file_that_is_a_pipe_does_not_block(
    tmp_path: Path, home: Path
) -> None:
    repo = repository(tmp_path / "repo", {"pkg/a.py": ""})
    os.mkfifo(repo / ".gitignore")
    names = [Path(rules.name).name for rules in rules_outside(repo)]
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
