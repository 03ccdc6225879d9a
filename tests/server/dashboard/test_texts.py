"""The texts of the page: in one table, in both languages, and none beside it."""

import re
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[3] / "byok" / "server" / "dashboard" / "static"
SCRIPTS = sorted(p for p in STATIC.rglob("*.js") if "vendor" not in p.parts)
CODE = [path for path in SCRIPTS if path.name != "texts.js"]
_STRING = r'"((?:[^"\\]|\\.)*)"'
_ENTRY = re.compile(
    rf"^  {_STRING}: \[\s*{_STRING},\s*{_STRING},?\s*\],$", re.MULTILINE
)
_VALUE = re.compile(r"\{(\w+)\}")
# A sentence or a title: the page's own words begin with a capital and have a space.
_WORDS = re.compile(r"[\"'`>]([A-Z][a-z]+ [a-z]+[^\"'`]*)")
# What would run or parse a text, or take a style from one.
_DANGEROUS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    r"|DOMParser|srcdoc|createContextualFragment|setTimeout\([\"'`]|cssText"
)


def read(path: Path) -> str:
    return path.read_text("utf-8")


def without_comments(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"(^|\s)//.*$", "", text, flags=re.MULTILINE)


def name(path: Path) -> str:
    return str(path.relative_to(STATIC))


@pytest.fixture(scope="module")
def texts() -> dict[str, tuple[str, str]]:
    """The table: English and Chinese by key."""
    joined = re.sub(r'"\s*\+\s*"', "", read(STATIC / "texts.js"))
    joined = joined.replace(r"\u00a0", "\N{NO-BREAK SPACE}")
    found = _ENTRY.findall(joined)
    keys = [key for key, *_ in found]
    assert sorted(set(keys)) == sorted(keys)
    return {key: (english, chinese) for key, english, chinese in found}


def used_keys(code: str) -> tuple[set[str], list[str]]:
    """Return the keys that a script asks for, and patterns of those it composes."""
    plain = set(re.findall(rf"\bt\(\s*{_STRING}", code))
    composed = re.findall(r"\bt\(\s*`([^`]+)`", code)
    return plain, [pattern_of(key) for key in composed]


def optional_keys(code: str) -> list[str]:
    """Return patterns of keys that may be missing: the daemon has words for them."""
    return [pattern_of(key) for key in re.findall(r"\btextOr\(\s*`([^`]+)`", code)]


def pattern_of(key: str) -> str:
    return re.escape(re.sub(r"\$\{[^}]*\}", "\0", key)).replace("\0", ".+")


def test_every_entry_of_the_table_is_read_here(
    texts: dict[str, tuple[str, str]],
) -> None:
    lines = re.findall(r'^  "[^"]+": \[', read(STATIC / "texts.js"), re.MULTILINE)
    assert len(texts) == len(lines)


@pytest.mark.parametrize("path", CODE, ids=name)
def test_a_script_asks_for_texts_that_exist(
    path: Path, texts: dict[str, tuple[str, str]]
) -> None:
    plain, patterns = used_keys(read(path))
    assert sorted(plain - texts.keys()) == []
    assert [
        pattern
        for pattern in patterns
        if not any(re.fullmatch(pattern, key) for key in texts)
    ] == []


def test_every_text_is_used(texts: dict[str, tuple[str, str]]) -> None:
    code = "\n".join(map(read, CODE))
    strings = set(re.findall(_STRING, code))
    patterns = used_keys(code)[1] + optional_keys(code)
    assert [
        key
        for key in texts
        if key not in strings
        and not any(re.fullmatch(pattern, key) for pattern in patterns)
    ] == []


def test_both_languages_say_the_same(texts: dict[str, tuple[str, str]]) -> None:
    for key, (english, chinese) in texts.items():
        assert english.strip() == english != "", key
        assert chinese.strip() == chinese != "", key
        assert sorted(_VALUE.findall(english)) == sorted(_VALUE.findall(chinese)), key


def test_chinese_is_written_as_chinese(texts: dict[str, tuple[str, str]]) -> None:
    """With its own marks, and a space between it and Latin words."""
    for key, (_, chinese) in texts.items():
        assert not re.search(r"[一-鿿][,;:?!]", chinese), (key, chinese)
        assert not re.search(r"[一-鿿][A-Za-z0-9]|[A-Za-z0-9][一-鿿]", chinese), (
            key,
            chinese,
        )


@pytest.mark.parametrize("path", CODE, ids=name)
def test_a_script_has_no_text_of_its_own(path: Path) -> None:
    assert _WORDS.findall(without_comments(read(path))) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_a_script_runs_and_parses_no_text(path: Path) -> None:
    assert _DANGEROUS.findall(without_comments(read(path))) == []
