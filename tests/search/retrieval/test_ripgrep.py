"""Search without an index: nothing steers rg, and whatever it does ends in time."""

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.code_query import DEFAULT_LENGTH
from byok.core.platform.programs import find_program
from byok.search.index.files.ignore import rules_of
from byok.search.index.types import IndexOptions, Kind, Span
from byok.search.retrieval.ripgrep import (
    MAX_LINES_OF_FILE,
    UNAVAILABLE,
    MatchCollector,
    Ripgrep,
    TextSearchResult,
    answer_without_index,
    rank_by_rarity,
    search_words,
)
from tests.fakes.engines import project
from tests.fakes.patience import START

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
    # The lines around a match are assumed to have 40 characters each.
    assert max(span.chars for [span] in found.spans.values()) == 400 + 4 * 40


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
    seconds = 2.0 if hangs else START
    rg = fake(tmp_path, text, token_seconds=seconds, total_seconds=START)
    async with asyncio.timeout(2 * START):
        found = await rg.search(tmp_path, "zebra", everything)
    assert len(found.notes) == (note is not None)
    assert all(note and note in said for said in found.notes)
    assert [(f.path, found.spans[f.blob_id]) for f in found.files] == (
        [("a.py", [Span(0, 4, len("zebra") + 4 * 40)])] if matched else []
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
        assert not found.files
        assert found.notes == (UNAVAILABLE,)
    text = await Ripgrep(lambda: None).answer(tmp_path, "zebra", everything, 900)
    assert "install ripgrep" in text


@pytest.mark.case("F20")
async def test_ripgrep_words_together_have_a_deadline(tmp_path: Path) -> None:
    rg = fake(tmp_path, "exec sleep 60", token_seconds=50, total_seconds=1)
    found = await rg.search(tmp_path, "one two three four five", everything)
    assert not found.files
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


# Without an index, a few words of a question are searched, the telling ones first


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("where is the session cookie signed", ["session", "cookie", "signed"]),
        ("fix parser", ["parser", "fix"]),
        ("Parser parser PARSER", ["Parser"]),
        ("what is it for and why", ["what", "for", "and", "why"]),
        ("a b c", ["a b c"]),
        ("-x", ["-x"]),
        ("登录 霓虹", ["login", "signin", "auth", "登录", "霓虹"]),
        ("登", ["登"]),
        ("where is the function 搜索", ["function", "search", "搜索"]),
        ("霓虹甲乙丙", ["霓虹", "虹甲", "甲乙", "乙丙"]),
        ("计算总和", ["compute", "sum", "calculate", "total", "计算总和"]),
        ("xyz größe", ["xyz", "größe", "size"]),
        ("x" * 99, ["x" * 64]),
        ("1" * 99, ["1" * 64]),
        ("a\x00b", ["a"]),
        ("\n\r 1\n2", ["1"]),
        ("", []),
        (" \n\x00\r ", []),
        (" ".join(f"word{chr(97 + n)}" for n in range(9)),
         [f"word{chr(97 + n)}" for n in range(8)]),
    ],
)  # fmt: skip
def test_search_words_are_few(text: str, tokens: list[str]) -> None:
    assert search_words(text) == tokens


@pytest.mark.case("B48", "B51")
@given(st.text())
def test_search_word_is_short_without_nul_and_line_end(text: str) -> None:
    tokens = search_words(text)
    assert len(tokens) <= 8
    for token in tokens:
        assert 0 < len(token) <= 64
        assert not {"\x00", "\n", "\r"} & set(token)


def test_search_words_of_a_foreign_question_are_english_and_its_own() -> None:
    found = search_words("请求上下文和响应渲染的生命周期 RouterGroup 如何注册中间件")
    assert found[0] == "RouterGroup"
    assert {"request", "context"} <= set(found)
    assert sum(not word.isascii() for word in found) == 2


# Lines with words become ranked files, and these become chunks to pack


def found_in(**words: str) -> MatchCollector:
    """Make what was found: for each word the paths that have it, again for more."""
    found = MatchCollector(searched=100)
    for word, paths in words.items():
        for number, path in enumerate(paths.split()):
            found.add(word, path, number, f"{word} here")
    return found


def order(found: MatchCollector) -> list[str]:
    return [file.path for file in rank_by_rarity(found)[0]]


def test_matches_of_rare_words_of_more_words_and_of_more_lines_count_more() -> None:
    found = found_in(rare="b.py", common="a.py c.py d.py e.py f.py")
    assert order(found) == ["b.py", "a.py", "c.py", "d.py", "e.py", "f.py"]
    found = found_in(one="a.py b.py b.py c.py", two="c.py")
    assert order(found) == ["c.py", "b.py", "a.py"]


def test_a_whole_word_counts_more_than_a_part_of_one() -> None:
    found = MatchCollector(searched=100)
    for number in range(10):
        found.add("handler_77", "mod770.py", number, f"def handler_77{number}():")
    found.add("handler_77", "mod77.py", 0, "def Handler_77():")
    assert order(found) == ["mod77.py", "mod770.py"]


def test_matches_of_a_word_seen_in_part_count_as_common() -> None:
    found = found_in(the="a.py", zebra="b.py c.py")
    assert order(found)[0] == "a.py"
    found.common.add("the")
    assert order(found) == ["b.py", "c.py", "a.py"]


def test_matches_weigh_kinds_of_files_like_the_index() -> None:
    found = found_in(zebra="tests/a.py docs/a.md z.py")
    assert order(found) == ["z.py", "tests/a.py", "docs/a.md"]
    lifted, _ = rank_by_rarity(found, {Kind.DOC: 0.6})
    assert [file.path for file in lifted] == ["z.py", "docs/a.md", "tests/a.py"]


def test_matches_have_ordered_truncated_and_few_lines() -> None:
    found = MatchCollector()
    for number in reversed(range(MAX_LINES_OF_FILE + 9)):
        found.add("x", "a.py", number, "x" * 9000)
    lines = found.lines["a.py"]
    assert sorted(lines) == list(range(9, MAX_LINES_OF_FILE + 9))
    assert {len(text) for text in lines.values()} == {400}
    _, spans = rank_by_rarity(found)
    assert [span.first for span in spans[0]] == sorted(span.first for span in spans[0])


@pytest.mark.parametrize(
    ("numbers", "spans"),
    [
        ([0], [(0, 2)]),
        ([10, 12, 15], [(8, 17)]),
        ([10, 16], [(8, 12), (14, 18)]),
        (list(range(40)), [(0, 29), (26, 41)]),
    ],
)
def test_matches_near_each_other_are_one_chunk(
    numbers: list[int], spans: list[tuple[int, int]]
) -> None:
    found = MatchCollector()
    for number in numbers:
        found.add("x", "a.py", number, "text")
    _, of = rank_by_rarity(found)
    assert [(span.first, span.last) for span in of[0]] == spans


def test_matches_make_the_chunk_with_most_lines_the_best() -> None:
    found = MatchCollector()
    for number in (3, 50, 51, 52):
        found.add("x", "a.py", number, "x")
    [file], spans = rank_by_rarity(found)
    assert (file.path, file.blob_id) == ("a.py", 0)
    assert [(chunk.ordinal, chunk.score) for chunk in file.chunks] == [(1, 3), (0, 1)]
    assert spans[0][1] == Span(48, 54, 3 * 161)


# Answers while another process has the index open


async def answer_feed(program: str | None, roots: list[Path]) -> str:
    return await answer_without_index(
        Ripgrep(lambda: program),
        lambda root: rules_of(root, IndexOptions()),
        "feed",
        roots,
    )


@pytest.mark.skipif(RG is None, reason="rg is not installed")
async def test_folders_are_searched_by_their_rules(tmp_path: Path) -> None:
    roots = [
        project(
            tmp_path / name,
            a__py=f"def feed_{name}(): pass\n",
            **{".env": "feed=1\n", ".augmentignore": "b.py\n"},
            b__py="feed = 2\n",
        )
        for name in ("lion", "tiger")
    ]
    both = await answer_feed(RG, roots)
    assert "Path: lion/a.py" in both
    assert "Path: tiger/a.py" in both
    assert "b.py" not in both
    assert ".env" not in both
    one = await answer_feed(RG, roots[:1])
    assert "Path: a.py\n     1\tdef feed_lion" in one
    assert "Another byok process has the index open" in one


async def test_text_search_answer_fits_and_says_what_is_missing(
    tmp_path: Path,
) -> None:
    roots = [project(tmp_path / str(n), a__py="x\n") for n in range(9)]
    text = await answer_feed(None, roots)
    assert UNAVAILABLE in text
    assert len(text) <= DEFAULT_LENGTH
