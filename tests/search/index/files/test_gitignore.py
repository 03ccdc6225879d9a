"""Lines and globs of an ignore file, as git reads them."""

import time

import pytest

from byok.search.index.files.gitignore import Patterns, pattern_lines


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
        ("[a", [], ["[a", "a"]),
        ("a\\", [], ["a", "a\\"]),
        ("ü?", ["üa"], ["ü"]),
        ("a\nb", ["a\nb"], ["a"]),
    ],
)
def test_gitignore_line_matches_what_git_matches(
    line: str, hits: list[str], misses: list[str]
) -> None:
    patterns = Patterns([line])
    assert [path for path in hits if not patterns.verdict(path, is_dir=False)] == []
    assert [path for path in misses if patterns.verdict(path, is_dir=False)] == []


@pytest.mark.parametrize("line", ["a/", "*.x/", "/a/", "p/a/", "[a]/", "**/a/"])
def test_gitignore_line_for_folders_matches_no_file(line: str) -> None:
    paths = ("a", "b.x", "p/a")
    patterns = Patterns([line])
    assert any(patterns.verdict(path, is_dir=True) for path in paths)
    assert not any(patterns.verdict(path, is_dir=False) for path in paths)


@pytest.mark.parametrize("line", ["a/**", "/a/** ", "**/a/**", "a/**/"])
def test_gitignore_line_for_all_in_a_folder_still_enters_the_folder(
    line: str,
) -> None:
    patterns = Patterns([line, "!a/kept"])
    assert patterns.verdict("a", is_dir=True) is None
    assert patterns.verdict("a/b", is_dir=True)
    assert patterns.verdict("a/kept", is_dir=False) is False


@pytest.mark.parametrize(
    "lines",
    [["a.c", "!*.c"], ["*.c", "!a.c"], ["a*", "!a.c"], ["a.c", "!a*"], ["*", "!/a.c"]],
)
def test_gitignore_last_matching_line_decides(lines: list[str]) -> None:
    assert Patterns(lines).verdict("a.c", is_dir=False) is False
    assert Patterns(lines[::-1]).verdict("a.c", is_dir=False) is True
    assert Patterns(lines).verdict("b.d", is_dir=True) is not False


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


@pytest.mark.case("B71")
@pytest.mark.parametrize(
    "glob",
    [
        "*a*a*a",
        "*a" * 8 + "*b",
        "*[a-b]" * 100 + "c",
        "a/**/b/**/" * 12 + "c",
        "**/*a/" * 50 + "*b",
        "*?" * 100 + "b",
        "**/" * 300 + "b",
    ],
)
def test_gitignore_globs_take_linear_time(glob: str) -> None:
    patterns = Patterns([glob])
    names = ["a" * 254, "a" * 253 + "c", "a/" * 120 + "a", "a/b/" * 60 + "d"]
    began = time.process_time()
    for name in names:
        patterns.verdict(name, is_dir=False)
    assert time.process_time() - began < 0.5


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


def test_gitignore_line_that_re2_refuses_is_named_and_ignores_nothing() -> None:
    patterns = Patterns(["[[:nope:]]a", "b", "?" * 100_000, "c"])
    assert patterns.unreadable == ["[[:nope:]]a", "?" * 100_000]
    assert patterns.verdict("xa", is_dir=False) is None
    assert patterns.verdict("b", is_dir=False)
    assert patterns.verdict("c", is_dir=False)
